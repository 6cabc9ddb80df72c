const page = 400; // rows that are made at once
const listed = 12; // rows of a card, before it is opened
const level = 15, levels = 8; // pixels, and how many nested runs a lane shows
const chosen = new Map(); // a card's number, and the row of it that is selected
let order = { column: -1, down: false };
let shown = page;
let range = null; // the part of the time that is selected: [from, to]

const number = n => n.toLocaleString("en");
const inAll = number(report.count) + (report.count === 1 ? " hit" : " hits");
function time(ns) {
	for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) if (Math.abs(ns) >= unit) return +(ns / unit).toPrecision(4) + " " + name;
	return Math.round(ns) + " ns";
}
const ends = h => h.time + Math.max(h.took, 0);

at("definition").textContent = report.title || "no hits";
at("about").textContent = time(report.span) + " from " + report.start + " s after the machine started";
at("note").textContent = report.note;
for (const t of report.totals) {
	const li = make("li");
	li.append(make("b", "", number(BigInt(t.n))), " " + t.what);
	at("totals").append(li);
}

// Cards: what each counts, and which row a hit belongs to.
const cards = [
	{ name: "Sites", rows: report.sites, of: h => h.site },
	{ name: "Tasks", rows: report.tasks, of: h => h.task, about: report.allTasks > report.tasks.length ? "those with most hits, of " + number(report.allTasks) : "" },
	...report.histograms.map((x, i) => ({ name: x.name, rows: x.buckets, ordered: !x.words, about: x.definition + (x.lost ? "; " + number(x.lost) + " not fetched" : ""), of: h => (h.in.find(p => p[0] === i) || [0, -1])[1] })),
];

function drawCards() {
	at("unlisted").textContent = "of all " + inAll + (report.allHistograms > report.histograms.length ? "; " + report.histograms.length + " of " + number(report.allHistograms) + " histograms" : "");
	for (const [i, c] of cards.entries()) {
		const card = make("div", "card");
		card.append(make("h3", "", c.name), make("p", "", c.about || ""));
		const most = Math.max(1, ...c.rows.map(r => r.n));
		const row = (r, k) => {
			const b = make("button", "row"), fill = make("span", "fill");
			b.type = "button";
			b.title = r.text + (r.definition ? "\n" + r.definition : "");
			b.ariaPressed = "false";
			fill.style.width = r.n ? 100 * r.n / most + "%" : "0";
			if (!r.n) fill.style.minWidth = "0";
			const bar = make("span");
			fill.style.display = "block";
			bar.append(fill);
			b.append(make("span", "label", r.text), bar, make("span", "n", number(r.n)));
			b.onclick = () => {
				if (chosen.get(i) === k) chosen.delete(i);
				else chosen.set(i, k);
				for (const [j, other] of [...card.querySelectorAll(".row")].entries()) other.ariaPressed = String(chosen.get(i) === j);
				changed();
			};
			card.append(b);
		};
		const first = c.ordered ? c.rows.length : Math.min(listed, c.rows.length);
		c.rows.slice(0, first).forEach((r, k) => row(r, k));
		if (first < c.rows.length) {
			const more = make("button", "row", number(c.rows.length - first) + " more");
			more.type = "button";
			more.onclick = () => { more.remove(); c.rows.slice(first).forEach((r, k) => row(r, first + k)); };
			card.append(more);
		}
		at("cards").append(card);
	}
}

// The table.
const columns = [
	{ name: "Time", text: h => h.clock, by: h => h.time },
	{ name: "Task", text: h => h.who },
	{ name: "Site", text: h => report.sites[h.site].text },
	{ name: "Values", text: h => h.values },
	...(report.hits.some(h => h.took >= 0 || h.duration) ? [{ name: "Duration", text: h => h.duration, by: h => h.took }] : []),
];

function drawHeads() {
	for (const [i, c] of columns.entries()) {
		const th = make("th", "", c.name);
		th.onclick = () => {
			order = { column: i, down: order.column === i && !order.down };
			for (const other of at("heads").children) other.removeAttribute("aria-sort");
			th.ariaSort = order.down ? "descending" : "ascending";
			drawRows(selected());
		};
		at("heads").append(th);
	}
}

function selected() {
	const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
	const rows = report.hits.filter(h => {
		if (range && (h.time > range[1] || ends(h) < range[0])) return false;
		for (const [i, k] of chosen) if (cards[i].of(h) !== k) return false;
		if (!words.length) return true;
		h.all ??= [...columns.map(c => c.text(h)), h.end, ...h.stack].join("\n").toLowerCase();
		return words.every(w => h.all.includes(w));
	});
	if (order.column >= 0) {
		const c = columns[order.column];
		const compare = c.by ? (a, b) => c.by(a) - c.by(b) : (a, b) => c.text(a).localeCompare(c.text(b), "en", { numeric: true });
		rows.sort((a, b) => compare(a, b) * (order.down ? -1 : 1));
	}
	return rows;
}

function drawRows(rows) {
	const of = report.hits.length < report.count ? number(report.hits.length) + " hits, chosen at random of " + number(report.count) : inAll;
	at("count").textContent = number(rows.length) + " of " + of;
	at("rows").replaceChildren();
	for (const h of rows.slice(0, shown)) {
		const tr = make("tr", "site");
		tr.tabIndex = 0;
		for (const c of columns) tr.append(make("td", "", c.text(h)));
		tr.onclick = () => toggle(tr, h);
		tr.onkeydown = e => { if (e.key === "Enter") toggle(tr, h); };
		at("rows").append(tr);
	}
	at("more").hidden = rows.length <= shown;
}

function toggle(tr, h) {
	if (!tr.classList.toggle("open")) return tr.nextSibling.remove();
	const details = make("tr", "details"), td = make("td", "detail"), list = make("dl");
	td.colSpan = columns.length;
	const add = (what, text) => { if (text) list.append(make("dt", "", what), make("dd", "", text)); };
	add("definition", report.sites[h.site].definition);
	add("function", h.function);
	add("ended at", h.end);
	h.stack.forEach((f, i) => add(i ? "from" : "stack", f));
	td.append(list);
	details.append(td);
	tr.after(details);
}

// The timeline: a lane's ground is darker where there are more hits of all, its marks are the hits of the
// table, and its bars whole runs.
const laneOf = { threads: h => h.who, functions: h => h.function };
const view = () => range || [0, report.span * 1.01 || 1000]; // the last hit is seen too

function drawTimeline(rows) {
	const by = at("lanes").value, all = report[by];
	const groups = new Map(all.lanes.map(l => [l.name, []]));
	for (const h of [...rows].sort((a, b) => a.time - b.time)) groups.get(laneOf[by](h))?.push(h);
	const [from, to] = view();
	const marks = report.hits.length < report.count ? "marks are of the hits of the table, the ground of all" : "";
	at("range").textContent = [range ? time(to - from) + " from " + time(from) + ": Reset shows all" : "a drag selects a part of the time", marks,
		all.all > all.lanes.length ? all.lanes.length + " of " + number(all.all) + " " + by : ""].filter(Boolean).join(" · ");
	at("timeline").replaceChildren();
	for (const l of all.lanes) {
		const hits = groups.get(l.name);
		if (range && !hits.length) continue;
		const line = make("div", "lane"), name = make("span", "name", l.name), canvas = make("canvas");
		name.title = l.name;
		line.append(name, canvas, make("span", "share", number(l.n)));
		at("timeline").append(line);
		drawLane(canvas, l, hits);
	}
	const line = make("div", "lane"), axis = make("span", "axis");
	for (let i = 0; i <= 4; i++) axis.append(make("span", "", time(from + (to - from) * i / 4)));
	line.append(make("span"), axis, make("span"));
	at("timeline").append(line);
}

function drawLane(canvas, lane, hits) {
	const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name);
	// Runs that overlap are below each other.
	const free = [];
	const rows = hits.map(h => {
		let n = free.findIndex(t => t <= h.time);
		if (n < 0) n = Math.min(free.length, levels - 1);
		free[n] = Math.max(free[n] ?? -Infinity, ends(h));
		return n;
	});
	const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = Math.max(1, ...rows.map(n => n + 1)) * level + 3;
	canvas.width = width * scale;
	canvas.height = height * scale;
	canvas.style.height = height + "px";
	const [from, to] = view(), x = t => (t - from) / (to - from) * width, c = canvas.getContext("2d");
	c.scale(scale, scale);
	const most = lane.bins.reduce((m, b) => Math.max(m, b[1]), 1);
	c.fillStyle = ink("--good");
	for (const [t, n] of lane.bins) {
		c.globalAlpha = 0.12 + 0.3 * n / most;
		c.fillRect(x(t), 0, Math.max(1, x(t + report.bin) - x(t)), height);
	}
	c.globalAlpha = 1;
	c.font = "11px ui-monospace, monospace";
	c.textBaseline = "middle";
	hits.forEach((h, i) => {
		const y = rows[i] * level + 2, w = Math.max(1.5, x(ends(h)) - x(h.time));
		c.fillStyle = ink("--mark");
		c.fillRect(x(h.time), y, w, level - 2);
		const label = at("lanes").value === "threads" ? h.function + " " + h.duration : h.duration, left = Math.max(x(h.time), 0) + 3;
		if (h.took >= 0 && c.measureText(label).width < x(ends(h)) - left - 3) {
			c.fillStyle = ink("--ground");
			c.fillText(label, left, y + level / 2 - 1);
		}
	});
	const when = e => from + (e.clientX - canvas.getBoundingClientRect().left) / width * (to - from);
	let begun = null;
	canvas.onpointerdown = e => { begun = when(e); canvas.setPointerCapture?.(e.pointerId); };
	canvas.onpointerup = e => {
		const [a, b] = [begun, when(e)].sort((p, q) => p - q);
		if (begun !== null && (b - a) / (to - from) * width > 3) { range = [a, b]; changed(); }
		begun = null;
	};
	canvas.onpointermove = e => {
		const t = when(e), near = 3 * (to - from) / width, row = Math.floor(e.offsetY / level);
		const i = hits.findIndex((h, i) => rows[i] === row && h.time - near <= t && t <= ends(h) + near);
		canvas.title = i < 0 ? "" : columns.map(c => c.text(hits[i])).filter(Boolean).join("\n");
	};
}

function changed() {
	shown = page;
	const rows = selected();
	drawRows(rows);
	drawTimeline(rows);
}

at("find").oninput = changed;
at("lanes").oninput = () => drawTimeline(selected());
at("reset").onclick = () => {
	at("find").value = "";
	chosen.clear();
	range = null;
	for (const b of document.querySelectorAll(".row[aria-pressed]")) b.ariaPressed = "false";
	changed();
};
at("more").onclick = () => { shown += page; drawRows(selected()); };
window.onresize = () => drawTimeline(selected());
drawCards();
drawHeads();
changed();
