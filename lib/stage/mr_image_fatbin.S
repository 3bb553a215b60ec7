/* SPDX-License-Identifier: BSD-3-Clause */
/* The fatbin as read-only data; the driver wants it aligned to 8 bytes. */
	.section .rodata
	.balign 64
	.globl mr_image_fatbin_start
	.hidden mr_image_fatbin_start
	.globl mr_image_fatbin_end
	.hidden mr_image_fatbin_end
mr_image_fatbin_start:
	.incbin MR_IMAGE_FILE
mr_image_fatbin_end:
	.section .note.GNU-stack, "", %progbits
