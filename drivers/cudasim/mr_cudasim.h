/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cudasim - a CUDA device in software, behind the table of mr_cuda_api.h.
 *
 *     device memory   an arena (memfd) with 64 KiB pages, mapped twice:
 *                     primary  what cuMemAlloc returns and what NICs write to;
 *                              the guard (mr_guard.h) may close it
 *                     alias    what kernels, copies and CPU mappings use
 *     host memory     cuMemHostAlloc: a memfd of its own, mapped twice as well
 *     streams         copies between device and page-locked memory, and values written
 *                     behind them, are done by one more thread, in order for each
 *                     stream; a copy of ordinary memory is done when the call returns
 *     kernel          the host build of an image (mr_sim_image.h), one thread
 *                     per block; blocks beyond what the device holds at once
 *                     wait for a place, in silence, as they do on a real device
 *
 * Devices are made by options and numbered like CUDA ordinals. Contexts are a
 * stack per thread and are enforced: a call without one fails, as it would on
 * the real driver.
 *
 *     mem=SIZE       device memory, default 1GiB; pages exist when touched
 *     bar=ADDRESS    device memory is the largest memory BAR of that PCI device, as in
 *                    bar=0000:00:04.0, of which mem takes a part; NICs then reach it as
 *                    they reach a GPU. Without the device, blocks and copies end as on a
 *                    GPU that fell off the bus. Uses SIGBUS
 *     bar=SIZE       how much of it `map` may show the CPU at once, default 256MiB
 *     sms=N          multiprocessors, default 4
 *     ordering=none|owner|all       GPUDirect RDMA writes ordering, default all
 *                    none: what a NIC writes is not seen by kernels before a flush
 *     flush=none|host|memops|both   ways to flush them, default both
 *     gdr=0|1        GPUDirect RDMA supported, default 1
 *     dmabuf=0|1     dma-buf export supported, default 1
 *     map=0|1        device memory can be mapped for the CPU, default 1
 *     alias=0|1      kernels have addresses of their own, which a guard needs; default 1, but
 *                    0 in a build with ThreadSanitizer, which takes one byte at two addresses
 *                    for two and would miss every hand-over
 *     seed=N         what fault=any is drawn from, default 1
 *     fault=F        may be given 8 times:
 *         alloc@K hostalloc@K register@K map@K module@K launch@K
 *                    the K-th call of that kind fails, counted from 1; register is
 *                    what readies memory for the DMA of others: cuMemHostRegister, and
 *                    SYNC_MEMOPS of device memory
 *         copy@K     the K-th copy that the device's thread was to do is refused
 *         copystall@K  from that copy on its stream stands still
 *         stall@B:MS block B of every kernel stands still, from MS milliseconds
 *                    after the first launch on
 *         idle@B:MS  block B of every kernel beats without making progress
 *         die@B:MS   block B faults: all blocks end, the context is lost
 *         lost@MS    the device is lost: every call that needs a context fails
 *         late       ordering=none
 *         any        one of these but copy and copystall, drawn from the seed
 *         noflush    flushes succeed and do nothing: what omitting them would show
 *     and what only a proof of the path can see, never drawn:
 *         attach@K   the K-th registration by a NIC fails
 *         revoke@MS  a registration is revoked, MS milliseconds after the first launch
 *         noread     NICs can write device memory and read something else (ordering=none)
 *         short      NICs reach all of an allocation but its last page
 *         hiddencopy NICs reach other memory, which the driver copies in secret when it is
 *                    called; needs alias=1
 *
 * Sizes are bytes or take KiB, MiB, GiB.
 *
 * Thread   any, except that a device must not be removed while it is used.
 * Errors   add: -EINVAL names the option, -ENOMEM, -ENOSPC (32 devices).
 */
#ifndef MR_CUDASIM_H
#define MR_CUDASIM_H

#include "mr_cuda_api.h"
#include "mr_err.h"

/* mr_cudasim_add makes one device of its own; options may be "" or NULL. */
MR_MUST_USE int mr_cudasim_add(const char *options, mr_cu_device *ret_dev, struct mr_err *err);

/* mr_cudasim_remove ends the device's kernels by force and frees all it held. */
void mr_cudasim_remove(mr_cu_device dev);

/* The table for that device: map and unmap are NULL with map=0. Never freed. */
const struct mr_cuda_api *mr_cudasim_api(mr_cu_device dev);

/* How many times GPUDirect writes were flushed, by either way. */
uint64_t mr_cudasim_flushes(mr_cu_device dev);

#endif
