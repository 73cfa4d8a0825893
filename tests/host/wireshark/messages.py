#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Makes messages.pcap: RoCE packets with a request and an answer of each type, some that are no
# messages, an eager message, and the private data of connections. Real nodes send some of them
# rarely. Run it again when wire.h has changed, and then `test --update`.
#
# usage: tests/host/wireshark/messages.py >tests/host/wireshark/messages.pcap
import struct
import sys

SEND_ONLY, SEND_ONLY_IMMEDIATE, UD_SEND_ONLY = 4, 5, 100
RKEY, QP = 0x1234, 17
CONTENT = struct.pack('>QQ', 3, 1000) + bytes(range(32))
KEYS = struct.pack('>II', 2, 0) + struct.pack('>QIIQII', 0x1000, RKEY, 4096, 0x9000, RKEY + 1, 512)
COOKIE = bytes(range(0xa0, 0xb0))
PROOF = bytes(range(0xc0, 0xe0))


def name(text):
    return text.encode().ljust(64, b'\0')


def packet(payload, opcode=SEND_ONLY, qp=QP, extension=b''):
    pad = -len(payload) % 4
    bth = struct.pack('>BBHII', opcode, pad << 4, 0xffff, qp, 7)
    udp_payload = bth + extension + payload + bytes(pad) + b'ICRC'
    udp = struct.pack('>HHHH', 49152, 4791, 8 + len(udp_payload), 0)
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(udp) + len(udp_payload), 0, 0, 64, 17, 0,
                     bytes((10, 78, 0, 2)), bytes((10, 78, 0, 1)))
    return bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)) + ip + udp + udp_payload


def message(type_, payload=b'', answer=False, status=0, slot=3, reserved=0):
    header = struct.pack('>BBHHHQ', type_ | (0x80 if answer else 0), slot, status, len(payload), reserved, 99)
    return packet(header + payload)


def mad(attribute, before_private, private, service=0):
    header = struct.pack('>BBBBHHQHHI', 1, 7, 2, 3, 0, 0, 5, attribute, 0, 0)
    body = (struct.pack('>QQ', 0, service) + bytes(before_private - 16) + private).ljust(232, b'\0')
    return packet(header + body, UD_SEND_ONLY, 1, struct.pack('>II', 0x80010000, 1))


def request(private, service):
    # rdma_cm's header: version 0, IPv4, port, addresses.
    return mad(16, 140, (struct.pack('>BBH', 0, 0x40, 700) + bytes(32)) + private, service)


def hello(kind, lane):
    return struct.pack('>IHHBBHI16sQ', 0x6b786672, 1, 1, kind, lane, 4, 0x7f, COOKIE, 12)


packets = [
    request(hello(0, 0), 0x1061dc9), # rdma_cm, TCP port space, port 7625
    mad(19, 36, struct.pack('>IHHI', 0x6b786672, 1, 4, 0x7d)),
    mad(19, 36, struct.pack('>IHHI16s', 0x6b786672, 1, 4, 0x7f, COOKIE)),
    request(hello(1, 2), 0),
    mad(18, 84, struct.pack('>IHHHH', 0x6b786672, 9, 1, 1, 0)),
    message(1),
    message(1, struct.pack('>QII', 0xabc000, RKEY, 0), answer=True),
    message(1, PROOF),
    message(1, struct.pack('>QII', 0xabc000, RKEY, 0) + PROOF, answer=True),
    message(2, slot=0),
    message(2, answer=True, slot=0),
    message(3, name('inbox') + struct.pack('>IIIIQ', 1000, 100, 3, 0, 0x77)),
    message(3, struct.pack('>QQQIIQ', 5, 6, 65536, 3, 2, 0x55) + CONTENT + KEYS, answer=True),
    message(3, answer=True, status=1),
    message(4, struct.pack('>QII', 6, 0, 0)),
    message(4, KEYS, answer=True),
    message(5, struct.pack('>Q', 5)),
    message(5, struct.pack('>QII', 5, 44, 0)),
    message(5, answer=True),
    message(6, struct.pack('>Q', 5)),
    message(6, struct.pack('>QQ', 1000, 0x55) + CONTENT + struct.pack('>QQ', 0xfeed, 31), answer=True),
    message(7, struct.pack('>QII', 0, 1000, 100)),
    message(7, struct.pack('>IIQ', 1, 0, 31) + name('inbox') + struct.pack('>QII', 65536, 15, 0) + CONTENT,
            answer=True),
    message(8, struct.pack('>Q', 6)),
    message(8, answer=True),
    message(9, struct.pack('>Q', 6) + CONTENT),
    message(9, answer=True),
    message(10, struct.pack('>QQ', 5, 0xc00c1e)),
    message(10, answer=True, status=6),
    message(11, struct.pack('>QII', 5, 3, 0x2a) + b'hello'),
    message(11, answer=True),
    message(12, struct.pack('>QQIIIIII', 5, 0xdead000, RKEY, 8192, 4, 0, 1, 0)),
    message(12, answer=True),
    message(13, struct.pack('>II', 1, 5)),
    message(13, answer=True),
    message(14, struct.pack('>II', 1, 0)),
    message(14, answer=True, status=6),
    message(15, struct.pack('>Q', 5)),
    message(15, struct.pack('>II', 64, 0), answer=True),
    message(16, struct.pack('>Q16s', 12, COOKIE)),
    message(16, answer=True),
    # Eager, to the grant 5; and on a QP that had no message of kxfer, which may be anyone's.
    packet(b'eager payload', SEND_ONLY_IMMEDIATE, QP, struct.pack('>I', 5)),
    packet(b'other payload', SEND_ONLY_IMMEDIATE, QP + 1, struct.pack('>I', 5)),
    # No messages of kxfer: a type, a slot, a status, reserved bits, lengths that none has.
    message(17),
    message(2, slot=16),
    message(2, status=1),
    message(2, answer=True, status=10),
    message(2, reserved=1),
    message(6, b'short'),
    message(3, bytes(88 + 4), answer=True),
    packet(b'kxfer'),
]

out = sys.stdout.buffer
out.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
for at, one in enumerate(packets):
    out.write(struct.pack('<IIII', at, 0, len(one), len(one)) + one)
