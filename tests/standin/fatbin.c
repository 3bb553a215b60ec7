/* SPDX-License-Identifier: BSD-3-Clause */
/* What a build without nvcc has no image for: the stand-in of the driver looks at no more. */
#include "mr_image.h"

static const uint32_t magic[4] = {0xba55ed50u};

const void *mr_image_fatbin(size_t *ret_bytes)
{
	*ret_bytes = sizeof(magic);
	return magic;
}
