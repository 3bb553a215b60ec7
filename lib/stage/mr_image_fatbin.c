/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_image.h"

#if defined(MR_IMAGE_FATBIN)

extern const unsigned char mr_image_fatbin_start[] __attribute__((visibility("hidden")));
extern const unsigned char mr_image_fatbin_end[] __attribute__((visibility("hidden")));

const void *mr_image_fatbin(size_t *ret_bytes)
{
	*ret_bytes = (size_t)(mr_image_fatbin_end - mr_image_fatbin_start);
	return mr_image_fatbin_start;
}

#else

const void *mr_image_fatbin(size_t *ret_bytes)
{
	*ret_bytes = 0;
	return NULL;
}

#endif
