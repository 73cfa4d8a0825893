// SPDX-License-Identifier: GPL-2.0
/* Credits taken and given back in any order, compared with a plain count of outstanding ones. */
#include "input.h"

#include <base/credit.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	u32 max = take(&input, 4), chain, extra, room;
	struct kxfer_credits credits;
	u64 out = 0, nr;
	bool good;

	kxfer_credits_init(&credits, max);
	while (input.left) {
		u8 shape = take(&input, 1);

		nr = take(&input, shape & 1 ? 4 : 1);
		if (shape & 2) {
			good = out + nr <= max;
			if (kxfer_credits_take(&credits, nr) != good)
				found("a wrong verdict about taking");
			out += good ? nr : 0;
		} else {
			good = nr <= out;
			if (kxfer_credits_give(&credits, nr) != good)
				found("a wrong verdict about giving back");
			out -= good ? nr : 0;
		}
		if (credits.max != max || credits.left + out != max)
			found("credits that come or go by themselves");
		chain = take(&input, 1);
		extra = shape >> 6;
		room = kxfer_credits_room(&credits, chain, extra);
		if (room && ((u64)room + extra > credits.left || (u64)room + extra > chain))
			found("a chain for which there is no place");
		if (!room && extra < credits.left && extra < chain)
			found("a chain waits for a place that is there");
	}
	return 0;
}
