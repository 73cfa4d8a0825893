// SPDX-License-Identifier: GPL-2.0
/* Bytes of a peer, compared with the model of what may be accepted (decode_model.h). */
#include "input.h"

#include <base/decode.c>
#include <decode_model.h>

#define MAX_KEYS	127

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kxfer_extent keys[MAX_KEYS + 1];
	struct input input = { data, size };
	u8 what = take(&input, 1), small = take(&input, 1);
	u32 length = input.left;
	u8 *bytes;

	/* Allocate the exact length, so that a sanitizer sees each byte read beyond it. */
	bytes = malloc(length ? length : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, input.data, length);
	switch (what % 8) {
	case 0:
		found(hello_wrong(bytes, length, small % (KXFER_WIRE_LANES_MAX + 1)));
		break;
	case 1:
		found(welcome_wrong(bytes, length, small % (KXFER_WIRE_LANES_MAX + 1)));
		break;
	case 2:
		found(message_wrong(bytes, length, small % 17));
		break;
	case 3:
		if (length >= sizeof(struct kxfer_wire_grant_answer))
			found(grant_wrong(bytes, small % 16));
		break;
	case 4:
		found(keys_wrong(keys, small % (MAX_KEYS + 1), (u64)small << 57, bytes, length));
		break;
	case 5:
		if (length >= sizeof(struct kxfer_wire_send))
			found(send_wrong(bytes, length, false) ?: send_wrong(bytes, length, true));
		break;
	case 7:
		if (length >= sizeof(struct kxfer_wire_offer))
			found(offer_wrong(bytes, 0) ?: offer_wrong(bytes, ~0U));
		break;
	default:
		found(list_wrong(bytes, length));
		break;
	}
	free(bytes);
	return 0;
}
