/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_plugin - stages in a shared object of their own, built out of tree.
 *
 *     tally.c ─ cc ──► kernel for the software device ─┐
 *        │                                             ├─► tally.so, named by `plugins:`
 *        └─── nvcc ──► kernel for GPUs, a fatbin ──────┘
 *
 * A plug-in is one C source that holds its stages as mr_stage.h describes them and brings the
 * whole persistent kernel with it: the kernel's source is part of this SDK, so a stage is
 * inlined as the built-in ones are, and its image has those too. A chain mixes built-in stages
 * with those of one plug-in.
 *
 *     #include "mr_plugin.h"
 *     MR_HD enum mr_flow mr_stage_tally(const struct mr_ctx *ctx, struct mr_view *v) { ... }
 *     #if !defined(__CUDACC__)
 *     static const struct mr_stage_desc mr_stage_desc_tally = { ... };    id is left out
 *     #endif
 *     #define MR_PLUGIN_STAGES(ROW) ROW(tally, THREAD)                    a ROW for each
 *     #include "mr_plugin_image.cu"
 *
 * pkg-config knows the SDK as millrace-stage. Its flags are those of the C compiler; its
 * variables are nvccflags, which make a fatbin of the same source, fatbin_source, the assembler
 * file that puts the fatbin given as MR_IMAGE_FILE into an object, and plugindir, where plug-ins
 * may be installed. Without a fatbin a plug-in runs on software devices alone.
 *
 * Of the program a plug-in may call mr_err_set, mr_table_next, mr_table_refuse, and the
 * mr_param_*_parse of mr_param.h; all else of the SDK is in headers.
 *
 * What may be loaded. An ELF note carries the SDK's identity, a digest of its files. It is read
 * before any of the plug-in's code runs, and only the very SDK that the program has is taken,
 * since the kernel's structures are the ABI. The file and the folders above it belong to root
 * or to the user who runs the program, and nobody else may write them.
 *
 * Thread   the tables are constant.
 */
#ifndef MR_PLUGIN_H
#define MR_PLUGIN_H

#include "mr_stage.h"

/* Owner, type and section of the note (ELF gABI, note section); it holds MR_SDK_ID as text. */
#define MR_PLUGIN_NOTE_SECTION ".note.millrace"
#define MR_PLUGIN_NOTE_OWNER "Millrace"
#define MR_PLUGIN_NOTE_TYPE 1

/* The symbol of struct mr_plugin. */
#define MR_PLUGIN_SYMBOL "mr_plugin"

#if !defined(__CUDACC__)
struct mr_sim_image;

struct mr_plugin_stage {
	const struct mr_stage_desc *desc;
	enum mr_work work; /* as the row says; the kernel was built for it */
};

/* What a plug-in exports; mr_plugin_image.cu makes it. */
struct mr_plugin {
	const struct mr_plugin_stage *stages; /* the i-th is MR_STAGE_COUNT + i in its kernel */
	uint32_t stages_count;
	const struct mr_sim_image *sim;
	const void *fatbin, *fatbin_end; /* NULL: it has none */
};
#endif

#endif
