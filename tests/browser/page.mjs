// SPDX-License-Identifier: BSD-3-Clause
// The page of a running instance in a browser: node page.mjs MODULES SHOTS SCENARIO ADDRESS
// Prints "ready" and waits for the instance; then a line for each thing that holds. The first
// that does not ends it with status 1.
import {createRequire} from "node:module";
const [modules, shots, scenario, address] = process.argv.slice(2);
const {chromium} = createRequire(modules + "/")("playwright-core");
const PATIENCE = Number(process.env.MILLRACE_PATIENCE || 1);
const sleep = ms => new Promise(done => setTimeout(done, ms));

function equal(got, wanted, what) {
	if (JSON.stringify(got) !== JSON.stringify(wanted))
		throw new Error(`${what}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);
}
function holds(condition, what) {
	if (!condition) throw new Error(what);
}
const status = async () => (await fetch(address + "api/v1/status")).json();

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
const asked = [], complaints = [];
page.on("request", r => asked.push(r.url()));
page.on("console", m => { if (["error", "warning"].includes(m.type())) complaints.push(m.text()); });
page.on("pageerror", e => complaints.push(String(e)));
const text = selector => page.locator(selector).innerText();
const cells = async selector => page.locator(selector).evaluateAll(rows => rows.map(r => [...r.cells].map(c => c.innerText.trim())));
const state = () => text("#state");

async function shows() {
	await until(async () => (await state()).includes("every path is proven"), 10 * PATIENCE, "the state");
	const told = await status();
	equal(await text("h1"), `Millrace ${told.instance}`, "heading");
	equal(await state(), "2 lanes run, every path is proven", "state");
	equal(await page.locator("#state").getAttribute("aria-live"), "polite", "the state for a screen reader");
	equal(await page.locator("article").count(), told.lanes.length, "lanes");
	for (const lane of told.lanes) {
		const a = `article[data-lane=${lane.name}] `;
		const layout = told.layout.find(l => l.name === lane.name);
		equal(await text(a + "h2"), `Lane ${lane.name} ${lane.path_verdict}, proven`, "verdict");
		const way = await page.locator(a + ".way li").allInnerTexts();
		equal(way.map(w => w.split("\n")[0]), ["NIC", "memory", "GPU", "NIC"], "the machine");
		const port = told.ports.find(p => p.name === layout.rx);
		holds(way[0].includes(`${layout.rx}, ${port.driver}, link up`), `receiving port: ${way[0]}`);
		holds(way[1].includes(`${lane.rx_path}; guard ${lane.guard}`), `memory: ${way[1]}`);
		holds(way[2].includes("g0, sim, healthy") && way[2].includes("kernel beats"), `GPU: ${way[2]}`);
		holds(layout.tx.every(p => way[3].includes(p)), `sending port: ${way[3]}`);
		await page.locator(a + "summary").click();
		const evidence = await cells(a + ".evidence tbody tr");
		equal(evidence, lane.evidence.map(e => [e.check, e.verdict, e.value.replace(/\s+/g, " ")]), "evidence");
		await page.locator(a + "summary").click();
		// Rates, latencies and drops of a flood are there and grow.
		await until(async () => {
			const n = await page.locator(a + ".numbers dd").allInnerTexts();
			return /[1-9]/.test(n[0]) && /[1-9]/.test(n[2]);
		}, 5 * PATIENCE, "rates");
		const rows = await cells(a + ".latency tbody tr");
		equal(rows.map(r => r[0]), ["10 s", "1 min", "5 min"], "latency over");
		holds(rows.every(r => r.slice(1).every(c => /^[0-9.]+ (ns|µs|ms|s)$/.test(c))), `latencies: ${JSON.stringify(rows)}`);
	}
	holds((await cells("article[data-lane=l0] .drops tbody tr"))[0][0] === "none", "lane l0 drops nothing");
	const dropped = await cells("article[data-lane=l1] .drops tbody tr");
	holds(dropped.length === 1 && dropped[0][0] === "gpu_drop_policy" && /[1-9]/.test(dropped[0][2]), `drops: ${JSON.stringify(dropped)}`);
	equal((await cells("#ports tbody tr")).map(r => r.slice(0, 2)), told.ports.map(p => [p.name, p.link]), "ports");
	const found = told.findings.filter(f => !f.skipped && ["WARN", "FAIL", "UNKNOWN"].includes(f.verdict));
	equal((await cells("#findings tbody tr")).map(r => r.slice(0, 2)), found.map(f => [f.id, f.verdict]), "findings");
	const passed = await text("#findings p");
	holds(passed.startsWith(told.findings.filter(f => f.verdict === "PASS").length + " checks passed"), `passed checks: ${passed}`);
	holds(passed.endsWith("not looked at: cpu.governor"), `what was skipped: ${passed}`);
	console.log(`ok ${found.length} findings`);
	console.log("ok every element");

	// A rate is what the counters say.
	const a = await status();
	await sleep(1000);
	const b = await status();
	const rate = (b.lanes[0].rx_packets - a.lanes[0].rx_packets) / (b.uptime_s - a.uptime_s);
	const shown = (await text("article[data-lane=l0] .numbers div:first-child dd")).split(" ");
	const number = Number(shown[0]) * ({k: 1e3, M: 1e6, G: 1e9}[shown[1]] || 1);
	holds(number > rate / 3 && number < rate * 3, `the rate ${shown} is not about ${rate}`);
	console.log("ok the rate is that of the counters");

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
}

async function unproven() {
	await until(async () => (await state()) === "1 lane runs, every path is proven", 10 * PATIENCE, "a proven path");
	await until(async () => (await status()).lanes[0].path_verdict === "unproven", 20 * PATIENCE, "the fault");
	const took = await until(async () => (await text("article h2")).includes("unproven"), 2 * PATIENCE, "the page shows the unproven path");
	equal(await state(), "unproven: the path of lane l0", "state");
	await until(async () => (await text("summary")).includes("failed"), 2 * PATIENCE, "the evidence that failed");
	await page.screenshot({path: `${shots}/unproven.png`, fullPage: true});
	console.log(`ok a path that is no longer proven, after ${Math.round(took)} ms`);
}

async function dies() {
	await until(async () => (await state()) === "1 lane runs, every path is proven", 10 * PATIENCE, "a lane that runs");
	let beats = -1, moved = performance.now();
	// The kernel beats thousands of times a second, so that half of one is a stop.
	await until(async () => {
		const now = (await status()).lanes[0].kernel_beats;
		if (now !== beats) moved = performance.now();
		beats = now;
		return performance.now() - moved > 500;
	}, 20 * PATIENCE, "the kernel's stop");
	await until(async () => (await state()).startsWith("dead: lane l0"), 2 * PATIENCE, "the page shows the dead lane");
	const took = performance.now() - moved;
	holds(took < 2000 * PATIENCE, `the page shows the dead lane after ${Math.round(took)} ms`);
	holds((await text(".beat")).startsWith("kernel stands since"), "heartbeat");
	await page.screenshot({path: `${shots}/dead.png`, fullPage: true});
	console.log(`ok a lane that died, after ${Math.round(took)} ms`);
	await until(async () => { try { await status(); } catch { return true; } return false; }, 20 * PATIENCE, "the end of the run");
	const late = await until(async () => (await state()).startsWith("connection lost at"), 2 * PATIENCE, "the page says that it lost the connection");
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
