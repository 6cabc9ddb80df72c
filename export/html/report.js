const page = 400; // rows that are made at once
let chosen = null; // a reason or a fetched part of a bar: {argument, reason}
let order = { column: -1, down: false };
let shown = page;

at("definition").textContent = report.definition;
at("about").textContent = [report.image, report.buildID && "build ID " + report.buildID, count(report.probes, "probe"), count(report.instanceCount, "instance")].filter(Boolean).join(" · ");
if (report.sites.length < report.probes) at("some").textContent = "All probes are counted, but there are too many for one page: the table has " + report.sites.length + " of " + report.probes + ", chosen evenly. Name fewer functions to see each.";

function drawCoverage() {
	for (const [i, { name, all, reasons: counts }] of (report.arguments || []).entries()) {
		const reasons = Object.entries(counts).sort((a, b) => b[1] - a[1]);
		const fetched = reasons.reduce((left, [, n]) => left - n, all);
		const line = make("div", "argument");
		line.append(make("span", "name", name));
		const bar = make("div", "bar");
		const part = (n, reason, label) => {
			if (!n) return;
			const b = make("button", reason ? "" : "fetched");
			b.style.width = 100 * n / all + "%";
			b.title = b.ariaLabel = name + ": " + n + " " + label;
			b.dataset.reason = reason;
			b.onclick = () => { chosen = { argument: i, reason }; shown = page; drawRows(); };
			bar.append(b);
		};
		part(fetched, "", "fetched");
		for (const [r, n] of reasons) part(n, r, r);
		line.append(bar, make("span", "share", fetched + " of " + all + " (" + (all ? (100 * fetched / all).toFixed(1) : "0") + " %)"));
		if (reasons.length) line.append(make("span", "reasons", reasons.map(([r, n]) => n + " " + r).join(", ")));
		at("coverage").append(line);
	}
}

const columns = [
	{ name: "Site", text: s => s.place },
	{ name: "Kind", text: s => s.kind + (s.way ? ", way " + s.way : "") },
	{ name: "Called from", text: s => s.chain.length ? s.chain[0].call : s.source },
	...(report.arguments || []).map(({ name }, i) => ({ name, argument: i, text: s => s.args[i] ? s.args[i].reason || s.args[i].location : "" })),
	{ name: "Probe", text: s => s.noProbe.split(":")[0] || s.method },
	{ name: "Instance", text: s => s.instance < 0 ? "" : String(s.instance) },
];

function drawHeads() {
	for (const [i, c] of columns.entries()) {
		const th = make("th", "", c.name);
		th.onclick = () => {
			order = { column: i, down: order.column === i && !order.down };
			for (const other of at("heads").children) other.removeAttribute("aria-sort");
			th.ariaSort = order.down ? "descending" : "ascending";
			drawRows();
		};
		at("heads").append(th);
	}
}

function selected() {
	const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
	const kind = at("kind").value, state = at("state").value;
	const rows = report.sites.filter(s => {
		if (kind && s.kind !== kind) return false;
		const missing = s.args.some(a => a.reason);
		if (state && (state === "missing") !== missing) return false;
		if (chosen && (!s.args[chosen.argument] || s.args[chosen.argument].reason !== chosen.reason)) return false;
		if (!words.length) return true;
		s.all ??= JSON.stringify([s.place, s.address, s.function, s.kind, s.source, s.chain, s.args, s.noProbe, s.method]).toLowerCase();
		return words.every(w => s.all.includes(w));
	});
	if (order.column >= 0) {
		const text = columns[order.column].text;
		rows.sort((a, b) => text(a).localeCompare(text(b), "en", { numeric: true }) * (order.down ? -1 : 1));
	}
	return rows;
}

function drawRows() {
	const rows = selected();
	at("count").textContent = rows.length + " of " + count(report.sites.length, "probe");
	const body = at("rows");
	body.replaceChildren();
	for (const s of rows.slice(0, shown)) {
		const tr = make("tr", "site");
		tr.tabIndex = 0;
		for (const c of columns) {
			const td = make("td", "", c.text(s));
			const a = c.argument === undefined ? null : s.args[c.argument];
			if (a) td.className = a.reason ? "missing" : "fetched";
			if (c.name === "Probe" && s.noProbe) td.className = "refused";
			tr.append(td);
		}
		tr.onclick = () => toggle(tr, s);
		tr.onkeydown = e => { if (e.key === "Enter") toggle(tr, s); };
		body.append(tr);
	}
	at("more").hidden = rows.length <= shown;
}

function toggle(tr, s) {
	if (tr.classList.toggle("open")) tr.after(detail(s));
	else tr.nextSibling.remove();
}

function detail(s) {
	const tr = make("tr", "details"), td = make("td", "detail"), list = make("dl");
	td.colSpan = columns.length;
	const add = (what, text, className) => { if (text) list.append(make("dt", "", what), make("dd", className, text)); };
	add("function", s.function);
	add("address", s.address + (s.view ? ", view " + s.view : "") + (s.section ? ", in " + s.section : ""));
	add("source", s.source);
	for (const c of s.chain) add("inlined into", c.function + " at " + c.call);
	add("way", s.way && s.way + (s.again ? ", also reached while it runs, or without running it" : ""));
	add("moved from", s.moved);
	for (const a of s.args) {
		add(a.name, a.type + "  " + (a.location || a.reason), a.reason ? "missing" : "fetched");
		add("", a.rule && "by " + a.rule, "soft");
		add("", a.from && "from " + a.from, "soft");
		add("", a.why, "soft");
	}
	add("probe", s.noProbe, "refused");
	add("probe", s.method);
	td.append(list);
	const instance = (report.instances || {})[s.instance];
	if (instance) td.append(make("div", "soft", "instance " + s.instance + ", of " + count(instance.sites, "probe")), make("pre", "", instance.text));
	tr.append(td);
	return tr;
}

for (const k of new Set(report.sites.map(s => s.kind))) at("kind").append(make("option", "", k));
for (const id of ["find", "kind", "state"]) at(id).oninput = () => { shown = page; drawRows(); };
at("reset").onclick = () => { at("find").value = at("kind").value = at("state").value = ""; chosen = null; shown = page; drawRows(); };
at("more").onclick = () => { shown += page; drawRows(); };
drawCoverage();
drawHeads();
drawRows();
