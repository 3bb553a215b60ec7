// SPDX-License-Identifier: BSD-3-Clause
// The page of a running instance in a browser: node page.mjs MODULES SHOTS SCENARIO ADDRESS
// Prints "ready" and waits for the instance; then a line for each thing that holds. The first
// that does not ends it with status 1.
import {createRequire} from "node:module";
const [modules, shots, scenario, address] = process.argv.slice(2);
const {chromium} = createRequire(modules + "/")("playwright-core");
const PATIENCE = Number(process.env.MILLRACE_PATIENCE || 1);
const KIND = {PASS: "good", NA: "soft", WARN: "warn", UNKNOWN: "warn", FAIL: "bad"};
const UNIT = {ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, k: 1e3, M: 1e6, G: 1e9, T: 1e12};
const sleep = ms => new Promise(done => setTimeout(done, ms));

function equal(got, wanted, what) {
	if (JSON.stringify(got) !== JSON.stringify(wanted))
		throw new Error(`${what}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}
function holds(condition, what) {
	if (!condition) throw new Error(what);
}

// A fault comes so long after the first launch, and the uptime counts from a moment after that. What
// a report tells may have been true 200 ms before, so that of all reports the earliest moment counts.
let born = Infinity;
async function status() {
	const told = await (await fetch(address + "api/v1/status")).json();
	born = Math.min(born, performance.now() - told.uptime_s * 1000);
	return told;
}
const sinceFault = () => performance.now() - born - process.env.MILLRACE_FAULT_MS;

// Milliseconds from now until a condition holds.
async function until(condition, seconds, what) {
	const begun = performance.now();
	while (!await condition()) {
		holds(performance.now() - begun < seconds * 1000, `${what}: not within ${seconds} s`);
		await sleep(20);
	}
	return performance.now() - begun;
}

const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"]});
const page = await browser.newPage({viewport: {width: 1280, height: 900}});
const asked = [], heard = [], complaints = [];
page.on("request", r => asked.push(r.url()));
page.on("response", r => { if (r.url() === address + "api/v1/status") heard.push(r.json().catch(() => null)); });
page.on("console", m => { if (["error", "warning"].includes(m.type())) complaints.push(m.text()); });
page.on("pageerror", e => complaints.push(String(e)));
const text = selector => page.locator(selector).innerText();
const cells = async selector => page.locator(selector).evaluateAll(rows => rows.map(r => [...r.cells].map(c => c.innerText.trim())));
// All of one moment, which a locator's are not: it looks for them first.
const texts = selector => page.evaluate(s => [...document.querySelectorAll(s)].map(e => e.innerText.trim()), selector);
const kinds = selector => page.locator(selector).evaluateAll(all => all.map(e => e.className));
const state = () => text("#state");

// Is that the value, with the three digits that the page gives at least?
function near(shown, value) {
	const [digits, unit] = shown.split(" ");
	return Math.abs(digits * (unit ? UNIT[unit] : 1) - value) <= Math.max(0.501, value / 199);
}

// The bound that so great a part of the packets between two histograms does not exceed.
function quantile(then, now, part) {
	const old = new Map(then), grown = now.map(([bound, n]) => [bound, n - (old.get(bound) || 0)]).filter(([, n]) => n > 0);
	const all = grown.reduce((sum, [, n]) => sum + n, 0);
	let below = 0;
	return grown.find(([, n]) => (below += n) >= part * all)?.[0];
}
const quantiles = (then, now) => [0.5, 0.99, 0.999].map(part => quantile(then, now, part));

// The numbers of a lane, from top to bottom, after these reports.
function numbers(reports, name) {
	const lane = r => r.lanes.find(l => l.name === name), sum = o => Object.values(o).reduce((x, y) => x + y);
	const now = reports.at(-1), old = seconds => reports.findLast(r => now.uptime_s - r.uptime_s >= seconds) || reports[0];
	const rate = of => (of(lane(now)) - of(lane(old(0.9)))) / (now.uptime_s - old(0.9).uptime_s);
	const drops = Object.entries(lane(now).drops).filter(([, n]) => n > 0);
	return [
		rate(l => l.rx_packets), rate(l => l.tx_packets), 8 * rate(l => l.rx_bytes), rate(l => sum(l.drops)), lane(now).in_flight,
		...[10, 60, 300].flatMap(s => quantiles(old(s).latency_buckets[name], now.latency_buckets[name])),
		...drops.length > 0 ? drops.flatMap(([reason, n]) => [n, rate(l => l.drops[reason])]) : [0, 0],
	];
}

// What the page says of a lane is what it was told: it may not have drawn the last report yet.
async function agrees(name) {
	await until(async () => heard.length > 3, 5 * PATIENCE, "reports");
	const shown = await texts(`article[data-lane=${name}] :is(.numbers dd, .latency tbody td, .drops tbody td)`);
	const told = await Promise.all(heard);
	const wanted = [0, 1, 2].map(less => numbers(told.slice(0, told.length - less), name));
	holds(wanted.some(w => w.length === shown.length && shown.every((s, i) => near(s, w[i]))),
		`lane ${name} shows ${JSON.stringify(shown)}, wanted ${JSON.stringify(wanted)}`);
	// The two are read one after the other while packets flow, and a bucket is a 32nd wide.
	const both = told.slice(-3).map(r => [quantiles([], r.latency_buckets[name]), r.lanes.find(l => l.name === name).latency_ns]);
	holds(both.some(([[p50, p99, p999], l]) => [p50 / l.p50, p99 / l.p99, p999 / l.p999].every(x => x > 0.95 && x < 1.05)),
		`latencies of lane ${name}: ${JSON.stringify(both)}`);
}

async function shows() {
	await until(async () => (await state()).includes("every path is proven"), 10 * PATIENCE, "the state");
	const told = await status();
	equal(await text("h1"), `Millrace ${told.instance}`, "heading");
	equal(await page.title(), `${told.instance} - Millrace`, "title");
	equal(await state(), "2 lanes run, every path is proven", "state");
	equal(await kinds("#state"), ["good"], "how the state looks");
	equal(await page.locator("#state").getAttribute("aria-live"), "polite", "the state for a screen reader");
	equal(await page.locator("article").count(), told.lanes.length, "lanes");
	for (const lane of told.lanes) {
		const a = `article[data-lane=${lane.name}] `;
		const layout = told.layout.find(l => l.name === lane.name);
		equal(await text(a + "h2"), `Lane ${lane.name} ${lane.path_verdict}, proven`, "verdict");
		equal(await kinds(`${a}h2 span, ${a}.beat`), ["mark good", "mark beat good"], "how the verdict and the heartbeat look");
		const port = name => `${name}, ${told.ports.find(p => p.name === name).driver}, link up`;
		equal(await texts(a + ".way li"), [`NIC\n${port(layout.rx)}`, `memory\n${lane.rx_path}; guard ${lane.guard}`,
			"GPU\ng0, sim, healthy\nkernel beats", `NIC\n${layout.tx.map(port).join("; ")}`], "the machine");
		equal(await texts(a + "h3"), ["Latency, from receive to the port or its backlog", "Drops by reason"], "what tables are about");
		equal(await texts(a + "dt"), ["received/s", "sent/s", "bits/s received", "dropped/s", "in flight"], "what numbers are");
		equal(await text(a + "summary"), `Evidence of the path: ${lane.evidence.length} checks, none failed`, "summary");
		await page.locator(a + "summary").click();
		equal(await texts(a + "thead th"), ["over", "p50", "p99", "p99.9", "reason", "packets", "per second",
			"evidence", "verdict", "what was seen"], "columns");
		const evidence = await cells(a + ".evidence tbody tr");
		equal(evidence, lane.evidence.map(e => [e.check, e.verdict, e.value.replace(/\s+/g, " ")]), "evidence");
		equal(await kinds(a + ".evidence .mark"), lane.evidence.map(e => "mark " + KIND[e.verdict]), "how the evidence looks");
		await page.locator(a + "summary").click();
		// Rates, latencies and drops of a flood are there and grow; the one lane sends all, the other drops all.
		const [goes, stays] = lane.name === "l0" ? [1, 3] : [3, 1];
		await until(async () => {
			const n = await texts(a + ".numbers dd");
			return [0, 2, goes].every(i => /[1-9]/.test(n[i])) && n[stays] === "0";
		}, 5 * PATIENCE, "rates");
		const rows = await cells(a + ".latency tbody tr");
		equal(rows.map(r => r[0]), ["10 s", "1 min", "5 min"], "latency over");
		holds(rows.every(r => r.slice(1).every(c => /^[0-9.]+ (ns|µs|ms|s)$/.test(c))), `latencies: ${JSON.stringify(rows)}`);
		await agrees(lane.name);
	}
	holds((await cells("article[data-lane=l0] .drops tbody tr"))[0][0] === "none", "lane l0 drops nothing");
	const dropped = await cells("article[data-lane=l1] .drops tbody tr");
	holds(dropped.length === 1 && dropped[0][0] === "gpu_drop_policy" && /[1-9]/.test(dropped[0][2]), `drops: ${JSON.stringify(dropped)}`);
	equal(await texts("section h2"), ["Ports", "What doctor found at the start"], "sections");
	equal(await texts("#ports thead th"), ["port", "link", "missed", "errors"], "columns of the ports");
	equal(await cells("#ports tbody tr"), told.ports.map(p => [p.name, p.link, String(p.rx_missed ?? "not counted"),
		String(p.rx_errors + p.tx_errors + p.rx_nombuf)]), "ports");
	equal(await page.locator("th:not([scope])").count(), 0, "headings of nothing");
	const found = told.findings.filter(f => !f.skipped && ["WARN", "FAIL", "UNKNOWN"].includes(f.verdict));
	equal(await cells("#findings tbody tr"), found.map(f => [f.id, f.verdict,
		(f.value + (f.hint && ". " + f.hint)).replace(/\s+/g, " ")]), "findings");
	equal(await kinds("#findings .mark"), found.map(f => "mark " + KIND[f.verdict]), "how the findings look");
	equal(await text("#findings p"), told.findings.filter(f => f.verdict === "PASS").length + " checks passed"
		+ (found.length > 0 ? "" : ", nothing else was found") + "; not looked at: cpu.governor", "passed checks");
	console.log(`ok ${found.length} findings`);
	console.log("ok every element");

	await page.screenshot({path: `${shots}/wide.png`, fullPage: true});
	await page.setViewportSize({width: 390, height: 844});
	const width = await page.evaluate(() => [document.documentElement.scrollWidth, document.body.scrollWidth]);
	holds(width.every(w => w <= 390), `wider than 390 pixels: ${width}`);
	await page.locator("summary").first().click();
	holds(await page.evaluate(() => document.documentElement.scrollWidth <= 390), "the evidence is wider than 390 pixels");
	await page.screenshot({path: `${shots}/narrow.png`, fullPage: true});
	const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	await page.emulateMedia({colorScheme: "dark"});
	const [back, front] = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);
	const bright = colour => colour.match(/\d+/g).slice(0, 3).reduce((x, y) => x + Number(y), 0) / 3;
	holds(back !== light && bright(back) < 60 && bright(front) > 180, `dark: ${front} on ${back}`);
	await page.screenshot({path: `${shots}/dark.png`, fullPage: true});
	console.log("ok 390 pixels, and in the dark");

	await page.setViewportSize({width: 1280, height: 900});
	await page.reload();
	await until(async () => await page.locator("summary").count() === 2, 10 * PATIENCE, "lanes after a reload");
	await page.keyboard.press("Tab");
	equal(await page.evaluate(() => document.activeElement.tagName), "SUMMARY", "what the first Tab reaches");
	holds(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle) !== "none", "focus is not seen");
	await page.keyboard.press("Enter");
	holds(await page.locator("details").first().evaluate(d => d.open), "Enter opens nothing");
	await sleep(1500);
	holds(await page.locator("details").first().evaluate(d => d.open), "an update closes what was open");
	equal(await page.evaluate(() => document.activeElement.tagName), "SUMMARY", "what an update leaves focused");
	console.log("ok by keyboard");
	await exact();
}

// Of reports in which no two numbers are alike, the page has to say just this.
async function exact() {
	const blind = await browser.newPage({javaScriptEnabled: false});
	await blind.goto(address);
	equal((await blind.locator("body").innerText()).split(/\s*\n\s*/), ["Millrace", "asking for the first report",
		"This page needs JavaScript. /metrics and /api/v1/status tell the same."], "without JavaScript");
	await blind.close();

	const real = await status(), [one, two] = Object.keys(real.lanes[0].drops);
	const finding = (id, verdict, value, hint, skipped) => ({id, title: id, verdict, value, hint, gating: false, skipped});
	// A bound, the second after which packets took so long, and how many.
	const took = [[500, 0, 9e6], [700, 50, 9e4], [9999, 120, 900], [20000, 0, 95e4], [45600, 50, 9500], [78900, 120, 95],
		[30e6, 0, 5e4], [78.9e6, 120, 5], [12.3e9, 50, 500]];
	const made = s => ({
		...real, uptime_s: 100 + s, balanced: false, devices: [{...real.devices[0], health: "stalled"}],
		lanes: [
			{...real.lanes[0], path_verdict: "unproven", kernel_beats: 1000 * s, rx_packets: 1234567 * s, tx_packets: 98765 * s,
				rx_bytes: 197530864 * s, drops: {[one]: 3e12 + 4321 * s, [two]: 999960}, in_flight: 31,
				evidence: ["PASS", "NA", "WARN", "UNKNOWN", "FAIL"].map(v => ({check: "c" + v, verdict: v, value: "v" + v}))},
			{...real.lanes[1], state: "drain", rx_path: "direct", tx_path: "staged", guard: "off", kernel_beats: 1000 * s, drops: {[one]: 0},
				in_flight: 12345},
		],
		latency_buckets: {l0: took.filter(([, after]) => s > after).map(([bound, , n]) => [bound, n]), l1: []},
		ports: [{...real.ports[0], link: "down", rx_missed: 11, rx_errors: 200, tx_errors: 3000, rx_nombuf: 40000},
			{...real.ports[1], rx_missed: null, rx_errors: 1, tx_errors: 2, rx_nombuf: 4}],
		findings: [finding("f.a", "FAIL", "it broke", "mend it", false), finding("f.b", "UNKNOWN", "unseen", "", false),
			finding("f.c", "PASS", "fine", "", false), finding("f.d", "NA", "", "", true)],
	});
	const answered = [];
	let first, odd;
	await page.goto("about:blank");
	await page.clock.install();
	await page.route("**/api/v1/status", async route => {
		const now = await page.evaluate(() => performance.now() / 1000);
		answered.push(now - (first ??= now));
		await route.fulfill({json: odd ?? made(answered.at(-1))});
	});
	await page.goto(address);
	// The page asks anew once it has drawn.
	const drawn = s => until(() => answered.filter(a => a > s).length > 1, 10 * PATIENCE, "what the page asks for");
	await drawn(0);
	await page.clock.fastForward(100000);
	await drawn(50);
	await page.clock.fastForward(30000);
	await drawn(120);

	const [l0, l1] = ["l0", "l1"].map(name => `article[data-lane=${name}] `);
	equal(await page.title(), `(!) ${real.instance} - Millrace`, "title");
	equal(await state(), "dead: lane l1; device g0 is stalled; unproven: the path of lane l0; packets are unaccounted for", "state");
	equal(await kinds("#state"), ["bad"], "how the state looks");
	equal(await texts("article h2"), ["Lane l0 unproven", `Lane l1 ${real.lanes[1].path_verdict}, proven`], "verdicts");
	equal(await kinds("article h2 span, .beat"), ["mark bad", "mark beat good", "mark good", "mark beat bad"], "how they look");
	equal(await texts(".beat"), ["kernel beats", "lane is in state drain"], "heartbeats");
	const driver = real.ports[0].driver;
	equal(await texts(l0 + ".way .soft"), [`p0, ${driver}, link down`, `${real.lanes[0].rx_path}; guard ${real.lanes[0].guard}`, "g0, sim, stalled",
		`p0, ${driver}, link down`], "the machine");
	equal((await texts(l1 + ".way .soft"))[1], "direct in, staged out; guard off", "memory");
	equal(await texts(l0 + "dd"), ["1.23 M", "98.8 k", "1.58 G", "4321", "31"], "numbers");
	equal(await texts(l1 + "dd"), ["0", "0", "0", "0", "12.3 k"], "numbers of a lane at rest");
	equal(await cells(l0 + ".latency tbody tr"), [["10 s", "9999 ns", "78.9 µs", "78.9 ms"], ["1 min", "700 ns", "45.6 µs", "12.3 s"],
		["5 min", "500 ns", "20.0 µs", "30.0 ms"]], "latencies");
	equal((await cells(l1 + ".latency tbody tr"))[0], ["10 s", "none", "none", "none"], "latencies of no packet");
	equal(await cells(l0 + ".drops tbody tr"), [[one, "3.00 T", "4321"], [two, "1.00 M", "0"]], "drops");
	equal(await cells(l1 + ".drops tbody tr"), [["none", "0", "0"]], "no drops");
	equal(await text(l0 + "summary"), "Evidence of the path: cFAIL failed", "summary");
	equal(await kinds(l0 + ".evidence .mark"), ["good", "soft", "warn", "warn", "bad"].map(k => "mark " + k), "how the evidence looks");
	equal(await cells("#ports tbody tr"), [["p0", "down", "11", "43.2 k"], ["p1", "up", "not counted", "7"]], "ports");
	equal(await kinds("#ports .mark"), ["mark bad", "mark good"], "how the links look");
	equal(await cells("#findings tbody tr"), [["f.a", "FAIL", "it broke. mend it"], ["f.b", "UNKNOWN", "unseen"]], "findings");
	equal(await kinds("#findings .mark"), ["mark bad", "mark warn"], "how the findings look");
	equal(await text("#findings p"), "1 check passed; not looked at: f.d", "passed checks");
	odd = {};
	await until(async () => (await state()).startsWith("this page cannot show what it was told: "), 10 * PATIENCE, "a report that is none");
	equal(await kinds("#state"), ["bad"], "how the state looks");
	await page.unrouteAll({behavior: "ignoreErrors"});
	console.log("ok just what it is told");
}

async function unproven() {
	await until(async () => (await state()) === "1 lane runs, every path is proven", 10 * PATIENCE, "a proven path");
	await until(async () => (await status()).lanes[0].path_verdict === "unproven", 20 * PATIENCE, "the fault");
	await until(async () => (await text("article h2")) === "Lane l0 unproven", 2 * PATIENCE, "the page shows the unproven path");
	const took = sinceFault();
	holds(took < 2000 * PATIENCE, `the page shows the unproven path ${Math.round(took)} ms after the fault`);
	equal(await state(), "unproven: the path of lane l0", "state");
	const told = await status();
	equal(await page.title(), `(!) ${told.instance} - Millrace`, "title");
	const failed = told.lanes[0].evidence.filter(e => e.verdict === "FAIL").map(e => e.check);
	equal(await text("summary"), `Evidence of the path: ${failed.join(", ")} failed`, "the evidence that failed");
	holds(failed.includes("watch"), `what failed: ${failed}`);
	await page.screenshot({path: `${shots}/unproven.png`, fullPage: true});
	console.log(`ok a path that is no longer proven, after ${Math.round(took)} ms`);
}

async function dies() {
	await until(async () => (await state()) === "1 lane runs, every path is proven", 10 * PATIENCE, "a lane that runs");
	await until(async () => await status() && sinceFault() > 0, 20 * PATIENCE, "the kernel's stop");
	equal(await state(), "1 lane runs, every path is proven", "state at the fault");
	await until(async () => (await state()) === "dead: lane l0", 2 * PATIENCE, "the page shows the dead lane");
	const took = sinceFault();
	holds(took < 2000 * PATIENCE, `the page shows the dead lane ${Math.round(took)} ms after the fault`);
	equal(await page.title(), `(!) ${(await status()).instance} - Millrace`, "title");
	holds(/^kernel stands since [1-9] s$/.test(await text(".beat")), `heartbeat: ${await text(".beat")}`);
	equal(await kinds("#state, .beat"), ["bad", "mark beat bad"], "how the state and the heartbeat look");
	await page.screenshot({path: `${shots}/dead.png`, fullPage: true});
	console.log(`ok a lane that died, after ${Math.round(took)} ms`);
	await until(async () => { try { await status(); } catch { return true; } return false; }, 20 * PATIENCE, "the end of the run");
	const late = await until(async () => /^connection lost at [\d:]+(\s[AP]M)?: .+; below is what was known then$/.test(await state()), 2 * PATIENCE,
		"the page says that it lost the connection");
	equal(await page.title(), "(lost) Millrace", "title");
	equal(await kinds("#state"), ["bad"], "how the state looks");
	holds(await page.evaluate(() => getComputedStyle(document.querySelector("main")).opacity) < 1, "what is old looks like what is new");
	await page.screenshot({path: `${shots}/lost.png`, fullPage: true});
	console.log(`ok a lost connection, after ${Math.round(late)} ms`);
}

try {
	console.log("ready");
	await until(async () => { try { return (await fetch(address + "readyz")).ok; } catch { return false; } }, 60 * PATIENCE, "an instance");
	await page.goto(address);
	await {shows, unproven, dies}[scenario]();
	const outside = asked.filter(url => !url.startsWith(address) && !url.startsWith("data:"));
	equal(outside, [], "requests to elsewhere");
	// A lost connection is what the last scenario is about, and the browser itself says so.
	equal(complaints.filter(c => scenario !== "dies" || !/net::ERR_|status of 503/.test(c)), [], "what the browser complains of");
	console.log("ok no complaint, no request to elsewhere");
} catch (e) {
	console.error(String(e.message || e));
	console.error("the page:", (await page.locator("body").innerText().catch(() => "")).slice(0, 1500));
	process.exitCode = 1;
} finally {
	await browser.close();
}
