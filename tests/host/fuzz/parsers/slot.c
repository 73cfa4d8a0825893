// SPDX-License-Identifier: GPL-2.0
/* Two channels that exchange messages in an order given by the input (slot_model.h). */
#include "input.h"

#include <base/slot.c>
#include <slot_model.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct model model;

	model_init(&model);
	while (input.left >= 2) {
		u8 choice = take(&input, 1);

		found(model_step(&model, choice, take(&input, 1)));
	}
	found(model_finish(&model));
	return 0;
}
