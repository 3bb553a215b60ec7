/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_check_gpu - checks 30 to 42 and 58: the GPU and its driver. */
#include "mr_checks_priv.h"

#include "mr_nearest.h"
#include "mr_parse.h"

#include <stdio.h>
#include <string.h>

#define CUDA_VERSION_MIN 13000 /* images are built by nvcc 13 */
#define BAR_SPARE_BYTES (32ull << 20)
#define BAR_LOW_BYTES (1ull << 30)
#define ORDERING_OWNER 100 /* CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER */
#define FLUSH_HOST 1
#define THROTTLE_HARDWARE 0xc8 /* HW slowdown, thermal, power brake (nvml.h) */
#define THROTTLE_IDLE 0x1      /* a GPU at rest clocks down, as it should */
#define CLOCK_SLACK_MHZ 500
#define COMPUTE_PROHIBITED 2
#define COMPUTE_EXCLUSIVE 3

static const struct mr_facts_pci *pci_of(const struct mr_check_in *in, const struct mr_needs_gpu *g)
{
	return &in->f->pci[in->f->gpus[g->gpu].pci];
}

static const struct mr_probe_gpu *probe_of(
	const struct mr_check_in *in, const struct mr_needs_gpu *g)
{
	return &in->f->gpus[g->gpu].probe;
}

/* What libraries know and did not say. */
static void unasked(
	const struct mr_probe_gpu *p, const char *bdf, const char *what, struct mr_finding *f)
{
	if (!mr_find(f, MR_UNKNOWN, "%s: %s not known%s", bdf, what,
		    p->error == -110 ? ", the driver did not answer in time" : ""))
		return;
	mr_hint(f, "it takes the driver's libraries: `nvidia-smi -i %s` should list the GPU", bdf);
}

static bool is_integrated(const struct mr_probe_gpu *p)
{
	return p->integrated.known && p->integrated.v != 0;
}

/* True where the question does not arise for a GPU without memory of its own. */
static bool pass_integrated(const struct mr_probe_gpu *p, const char *bdf, struct mr_finding *f)
{
	if (!is_integrated(p))
		return false;
	mr_find(f, MR_NA, "%s shares the host's memory", bdf);
	return true;
}

static void judge_missing(const struct mr_check_in *in, const char *bdf, struct mr_finding *f)
{
	struct mr_nearest near;

	mr_nearest_init(&near, bdf);
	for (uint32_t i = 0; i < in->f->gpus_count; i++)
		mr_nearest_offer(&near, in->f->pci[in->f->gpus[i].pci].bdf);
	if (mr_find_left_out(in, f, bdf) ||
		!mr_find(f, MR_FAIL, "there is no NVIDIA GPU at %s", bdf))
		return;
	if (mr_nearest_get(&near) != NULL)
		mr_hint(f, "is %s meant? `lspci -D -d 10de:` lists them", mr_nearest_get(&near));
	else
		mr_hint(f, "`lspci -D -d 10de:` lists the GPUs");
}

static void judge_driver(const struct mr_facts_pci *p, struct mr_finding *f)
{
	if (p->config.header == MR_PCI_LOST) {
		if (mr_find(f, MR_FAIL, "%s does not answer on the bus", p->bdf))
			mr_hint(f,
				"power it off and on; `dmesg | grep -i NVRM` tells when it was "
				"lost");
	} else if (p->driver.state == MR_FACT_ABSENT) {
		if (mr_find(f, MR_FAIL, "%s has no driver", p->bdf))
			mr_hint(f, "`modprobe nvidia`");
	} else if (p->driver.state != MR_FACT_KNOWN) {
		mr_find_unread(f, p->driver.state, p->bdf);
	} else if (strcmp(p->driver.v, "nvidia") == 0) {
		mr_find(f, MR_PASS, "%s nvidia", p->bdf);
	} else if (mr_find(f, MR_FAIL, "%s is bound to %s", p->bdf, p->driver.v)) {
		mr_hint(f,
			"`echo %s > /sys/bus/pci/drivers/%s/unbind; "
			"echo %s > /sys/bus/pci/drivers/nvidia/bind`",
			p->bdf, p->driver.v, p->bdf);
	}
}

void mr_check_gpu_driver(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_needs *needs = in->needs;

	for (uint32_t i = 0; i < needs->gpus_count; i++)
		if (needs->gpus[i].gpu == MR_FACTS_NONE)
			judge_missing(in, needs->gpus[i].bdf, f);
		else
			judge_driver(pci_of(in, &needs->gpus[i]), f);
	if (needs->configured || needs->gpus_count > 0)
		return;
	if (in->f->pci_state != MR_FACT_KNOWN && in->f->pci_state != MR_FACT_ABSENT)
		mr_find_unread(f, in->f->pci_state, "list of PCI devices");
	else if (mr_find_left_out(in, f, "an NVIDIA GPU"))
		return;
	else if (mr_find(f, MR_FAIL, "there is no NVIDIA GPU"))
		mr_hint(f, "`lspci -D -d 10de:` shows NVIDIA GPUs; pass one to this machine");
}

/* From R515 to before these, memory that a NIC holds could be freed under it (GPUDirect RDMA 2.2).
 */
static bool frees_early(const char *version)
{
	uint64_t major, minor = 0, patch = 0;
	const char *s = version;

	if (!mr_parse_take_u64(&s, &major))
		return false;
	if (*s == '.' && (s++, !mr_parse_take_u64(&s, &minor)))
		return false;
	if (*s == '.' && (s++, !mr_parse_take_u64(&s, &patch)))
		return false;
	if (major < 515 || major > 535)
		return false;
	if (major == 525)
		return minor < 105 || (minor == 105 && patch < 17);
	return major != 535 || minor < 14;
}

void mr_check_gpu_module(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_modules *m = &in->f->modules;
	const char *flavour = m->driver_open ? "open" : "proprietary";

	if (m->driver_state == MR_FACT_ABSENT) {
		if (mr_find(f, MR_FAIL, "the NVIDIA driver is not loaded"))
			mr_hint(f, "`modprobe nvidia`");
	} else if (m->driver_state != MR_FACT_KNOWN) {
		mr_find_unread(f, m->driver_state, "/proc/driver/nvidia/version");
	} else if (!m->driver_open && in->needs->pairs_count > 0 && mr_check_by_dmabuf(in)) {
		if (mr_find(f, MR_FAIL, "%s, %s: exports no dma-buf", m->driver, flavour))
			mr_hint(f,
				"install the open kernel modules: `apt-get install nvidia-open`");
	} else if (frees_early(m->driver)) {
		if (mr_find(f, MR_WARN, "%s, %s: memory can be freed under the NIC", m->driver,
			    flavour))
			mr_hint(f,
				"install a driver from 525.105.17, 535.14 or a later line: "
				"`nvidia-smi`");
	} else {
		mr_find(f, MR_PASS, "%s, %s", m->driver, flavour);
	}
}

/* DPDK's own driver knows GPUs up to Ampere by a table; Millrace's takes any by its address. */
void mr_check_gpu_gpudev(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		mr_find(f, MR_PASS, "%s by Millrace's own driver", pci_of(in, g)->bdf);
}

void mr_check_gpu_integrated(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;

		if (!p->integrated.known)
			unasked(p, bdf, "kind of memory", f);
		else if (p->integrated.v == 0)
			mr_find(f, MR_PASS, "%s has its own", bdf);
		else if (!g->direct)
			mr_find(f, MR_PASS, "%s shares the host's, as a pinned lane wants it", bdf);
		else if (mr_find(f, MR_FAIL, "%s shares the host's memory", bdf))
			mr_hint(f,
				"write path: [pinned] for its lanes; there is no memory to reach "
				"directly");
	}
}

void mr_check_gpu_gdr(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;

		if (!g->direct || pass_integrated(p, bdf, f))
			continue;
		if (!p->gdr_supported.known)
			unasked(p, bdf, "GPUDirect attribute", f);
		else if (p->gdr_supported.v != 0)
			mr_find(f, MR_PASS, "%s offers it", bdf);
		else if (mr_find(f, MR_FAIL, "%s does not offer it", bdf))
			mr_hint(f,
				"take a data-centre or professional GPU, or write path: [pinned]");
	}
}

void mr_check_gpu_dmabuf(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;

		if (!g->direct || pass_integrated(p, bdf, f))
			continue;
		if (!p->dma_buf_supported.known)
			unasked(p, bdf, "dma-buf attribute", f);
		else if (p->dma_buf_supported.v != 0)
			mr_find(f, MR_PASS, "%s exports it", bdf);
		else if (mr_find(f, MR_FAIL, "%s does not export it", bdf))
			mr_hint(f,
				"install the open kernel modules: `apt-get install nvidia-open`");
	}
}

void mr_check_gpu_ordering(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;

		if (!g->direct || pass_integrated(p, bdf, f))
			continue;
		if (!p->writes_ordering.known)
			unasked(p, bdf, "ordering of NIC writes", f);
		else if (p->writes_ordering.v >= ORDERING_OWNER)
			mr_find(f, MR_PASS, "%s orders them", bdf);
		else if (!p->flush_options.known)
			unasked(p, bdf, "way to flush", f);
		else if ((p->flush_options.v & FLUSH_HOST) != 0) {
			if (mr_find(f, MR_WARN,
				    "%s does not order NIC writes; every slot is flushed", bdf))
				mr_hint(f,
					"nothing to set: it costs a call per slot; newer GPUs "
					"order them");
		} else if (mr_find(f, MR_FAIL, "%s neither orders NIC writes nor flushes them",
				   bdf))
			mr_hint(f, "write path: [pinned]: a running kernel could read old bytes");
	}
}

static void judge_bar(const struct mr_needs_gpu *g, const struct mr_facts_pci *pci,
	const struct mr_probe_gpu *p, struct mr_finding *f)
{
	uint64_t need = g->direct_bytes + BAR_SPARE_BYTES;
	uint64_t bar = pci->bar_bytes.v;

	if (pci->bar_bytes.state != MR_FACT_KNOWN) {
		mr_find_unread(f, pci->bar_bytes.state, pci->bdf);
	} else if (bar < need) {
		if (mr_find(f, MR_FAIL, "%s: window of %llu MiB, %llu needed", pci->bdf,
			    (unsigned long long)bar >> 20, (unsigned long long)need >> 20))
			mr_hint(f,
				"switch Above 4G Decoding and Resizable BAR on in the BIOS, or "
				"lower "
				"the device's region");
	} else if (p->bar1_free.known && (uint64_t)p->bar1_free.v < need) {
		if (mr_find(f, MR_FAIL, "%s: %llu MiB of the window are free, %llu needed",
			    pci->bdf, (unsigned long long)p->bar1_free.v >> 20,
			    (unsigned long long)need >> 20))
			mr_hint(f, "another program holds it: `nvidia-smi -q -d MEMORY -i %s`",
				pci->bdf);
	} else if (!p->bar1_free.known) {
		unasked(p, pci->bdf, "free part of the window", f);
	} else if (bar < BAR_LOW_BYTES) {
		if (mr_find(f, MR_WARN, "%s: window of %llu MiB only", pci->bdf,
			    (unsigned long long)bar >> 20))
			mr_hint(f, "switch Above 4G Decoding and Resizable BAR on in the BIOS");
	} else {
		mr_find(f, MR_PASS, "%s: window of %llu MiB", pci->bdf,
			(unsigned long long)bar >> 20);
	}
}

void mr_check_gpu_bar(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		if (g->direct && !pass_integrated(probe_of(in, g), pci_of(in, g)->bdf, f))
			judge_bar(g, pci_of(in, g), probe_of(in, g), f);
}

void mr_check_gpu_pcie_link(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		if (!pass_integrated(probe_of(in, g), pci_of(in, g)->bdf, f))
			mr_check_link_of(in->f, pci_of(in, g), true, f);
}

static void judge_memory(const struct mr_probe_gpu *p, const char *bdf, struct mr_finding *f)
{
	bool failed = p->remap_failed.known && p->remap_failed.v != 0;
	bool action = p->recovery_action.known && p->recovery_action.v != 0;

	if (failed || action) {
		if (mr_find(f, MR_FAIL, "%s: %s", bdf,
			    failed ? "a row could not be remapped"
				   : "the driver asks for a recovery"))
			mr_hint(f,
				"`nvidia-smi -r -i %s`, or boot; a failed remap means another card",
				bdf);
	} else if (p->ecc_uncorrected.known && p->ecc_uncorrected.v != 0) {
		if (mr_find(f, MR_FAIL, "%s: %lld uncorrectable errors since boot", bdf,
			    (long long)p->ecc_uncorrected.v))
			mr_hint(f, "`nvidia-smi -r -i %s`, or boot", bdf);
	} else if (p->remap_pending.known && p->remap_pending.v != 0) {
		if (mr_find(f, MR_WARN, "%s: a row waits to be remapped", bdf))
			mr_hint(f, "`nvidia-smi -r -i %s` does it", bdf);
	} else if (!p->ecc_uncorrected.known && !p->remap_failed.known) {
		unasked(p, bdf, "memory health", f);
	} else {
		mr_find(f, MR_PASS, "%s is healthy", bdf);
	}
}

void mr_check_gpu_memory(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g)
		if (!pass_integrated(probe_of(in, g), pci_of(in, g)->bdf, f))
			judge_memory(probe_of(in, g), pci_of(in, g)->bdf, f);
}

void mr_check_gpu_log(const struct mr_check_in *in, struct mr_finding *f)
{
	const struct mr_facts_kernel *k = &in->f->kernel;

	if (k->log_state != MR_FACT_KNOWN) {
		mr_find_unread(f, k->log_state, "kernel log");
		return;
	}
	MR_EACH_GPU(in, g) {
		const struct mr_facts_gpu *gpu = &in->f->gpus[g->gpu];
		const char *bdf = pci_of(in, g)->bdf;

		if (gpu->fell_off) {
			if (mr_find(f, MR_FAIL, "%s has fallen off the bus", bdf))
				mr_hint(f,
					"power it off and on, reseat it: `dmesg | grep -i NVRM`");
		} else if (gpu->xid != 0 && gpu->probe.recovery_action.known &&
			gpu->probe.recovery_action.v == 0) {
			/* The log keeps it until the next boot, also after a reset. */
			if (mr_find(f, MR_WARN,
				    "%s had Xid %u, and its driver asks for no recovery", bdf,
				    gpu->xid))
				mr_hint(f, "see when it was: `dmesg | grep -i xid`");
		} else if (gpu->xid != 0) {
			if (mr_find(f, MR_FAIL, "%s had Xid %u", bdf, gpu->xid))
				mr_hint(f, "`nvidia-smi -r -i %s`, or boot: `dmesg | grep -i xid`",
					bdf);
		} else {
			mr_find(f, MR_PASS, "nothing of %s", bdf);
		}
	}
	if ((k->log_oops || k->log_io_fault || k->log_symbols) &&
		mr_find(f, k->log_oops ? MR_FAIL : MR_WARN, "%.160s", k->log_line))
		mr_hint(f,
			k->log_symbols ? "build nvidia-peermem anew against the loaded ib_core: "
					 "`dkms autoinstall`"
				       : "see the lines around it: `dmesg`");
}

void mr_check_gpu_use(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;
		long long others = p->processes.known ? (long long)p->processes.v : 0;

		if (p->compute_mode.known && p->compute_mode.v == COMPUTE_PROHIBITED) {
			if (mr_find(f, MR_FAIL, "%s may not be used for computing", bdf))
				mr_hint(f, "`nvidia-smi -c DEFAULT -i %s`", bdf);
		} else if (p->compute_mode.known && p->compute_mode.v == COMPUTE_EXCLUSIVE &&
			others > 0) {
			if (mr_find(f, MR_FAIL, "%s is held by one of %lld processes alone", bdf,
				    others))
				mr_hint(f, "`nvidia-smi -i %s` names it", bdf);
		} else if (p->mig.known && p->mig.v != 0) {
			if (mr_find(f, MR_WARN, "%s is divided (MIG)", bdf))
				mr_hint(f, "`nvidia-smi -mig 0 -i %s`", bdf);
		} else if (others > 0) {
			if (mr_find(f, MR_WARN, "%s is shared with %lld processes", bdf, others))
				mr_hint(f, "`nvidia-smi -i %s` names them", bdf);
		} else if (!p->compute_mode.known || !p->processes.known) {
			unasked(p, bdf, "use", f);
		} else {
			mr_find(f, MR_PASS, "%s is free", bdf);
		}
	}
}

void mr_check_gpu_clocks(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;

		if (pass_integrated(p, bdf, f))
			continue;
		if (!p->throttle.known) {
			unasked(p, bdf, "clocks", f);
		} else if ((p->throttle.v & THROTTLE_HARDWARE) != 0) {
			if (mr_find(f, MR_WARN, "%s slows itself down", bdf))
				mr_hint(f, "heat or power: `nvidia-smi -q -d PERFORMANCE -i %s`",
					bdf);
		} else if ((p->throttle.v & THROTTLE_IDLE) != 0) {
			mr_find(f, MR_PASS, "%s is at rest", bdf);
		} else if (!p->sm_mhz.known || !p->sm_mhz_max.known) {
			unasked(p, bdf, "clocks", f);
		} else if (p->sm_mhz_max.v - p->sm_mhz.v > CLOCK_SLACK_MHZ) {
			if (mr_find(f, MR_WARN, "%s runs at %lld of %lld MHz", bdf,
				    (long long)p->sm_mhz.v, (long long)p->sm_mhz_max.v))
				mr_hint(f, "`nvidia-smi -lgc %lld -i %s`",
					(long long)p->sm_mhz_max.v, bdf);
		} else {
			mr_find(f, MR_PASS, "%s is not slowed down", bdf);
		}
	}
}

void mr_check_cuda_driver(const struct mr_check_in *in, struct mr_finding *f)
{
	MR_EACH_GPU(in, g) {
		const struct mr_probe_gpu *p = probe_of(in, g);
		const char *bdf = pci_of(in, g)->bdf;
		long long v = (long long)p->cuda_version.v;

		if (p->libcuda.known && p->libcuda.v == 0) {
			if (mr_find(f, MR_FAIL, "libcuda.so.1 cannot be loaded"))
				mr_hint(f,
					"install the driver's library: `apt-get install libcuda1`, "
					"and see `ldconfig -p | grep libcuda`");
		} else if (!p->cuda_version.known)
			unasked(p, bdf, "version of the CUDA driver", f);
		else if (v >= CUDA_VERSION_MIN)
			mr_find(f, MR_PASS, "%lld.%lld", v / 1000, v % 1000 / 10);
		else if (mr_find(f, MR_FAIL, "%lld.%lld, older than 13.0", v / 1000, v % 1000 / 10))
			mr_hint(f, "install a driver of the 580 line or later: `nvidia-smi`");
	}
}
