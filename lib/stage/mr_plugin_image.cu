/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The image of a plug-in, and what it exports; included at the end of its source, which
 * defines MR_PLUGIN_STAGES(ROW).
 */
enum mr_plugin_stage_id {
	MR_PLUGIN_BEFORE = MR_STAGE_COUNT - 1,
#define MR_PLUGIN_ID(name, work) MR_STAGE_##name,
	MR_PLUGIN_STAGES(MR_PLUGIN_ID)
#undef MR_PLUGIN_ID
};

#if defined(__CUDACC__)
#include "mr_image.cu"
#else

#include "mr_sdk_id.h"

/* Its own, whatever the program or another plug-in exports. */
extern const struct mr_sim_image mr_image_sim __attribute__((visibility("hidden")));
#include "mr_image_sim.c"
/* Absent, and so NULL, in a plug-in without a fatbin. */
extern const unsigned char mr_image_fatbin_start[] __attribute__((weak, visibility("hidden")));
extern const unsigned char mr_image_fatbin_end[] __attribute__((weak, visibility("hidden")));

static const struct mr_plugin_stage mr_plugin_stages[] = {
#define MR_PLUGIN_ROW(name, work) {&mr_stage_desc_##name, MR_WORK_##work},
	MR_PLUGIN_STAGES(MR_PLUGIN_ROW)
#undef MR_PLUGIN_ROW
};

__attribute__((visibility("default"))) extern const struct mr_plugin mr_plugin;
const struct mr_plugin mr_plugin = {
	.stages = mr_plugin_stages,
	.stages_count = MR_ARRAY_LEN(mr_plugin_stages),
	.sim = &mr_image_sim,
	.fatbin = mr_image_fatbin_start,
	.fatbin_end = mr_image_fatbin_end,
};

/* namesz, descsz and type, then both texts, each up to 4 bytes (ELF gABI, note section). */
__asm__(".pushsection " MR_PLUGIN_NOTE_SECTION ", \"a\", %note\n"
	".balign 4\n"
	".long 2f - 1f, 4f - 3f, 1\n"
	"1: .asciz \"" MR_PLUGIN_NOTE_OWNER "\"\n"
	"2: .balign 4\n"
	"3: .asciz \"" MR_SDK_ID "\"\n"
	"4: .balign 4\n"
	".popsection\n");
_Static_assert(MR_PLUGIN_NOTE_TYPE == 1, "the note above says so");

#endif
