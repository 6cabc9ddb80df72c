at("about").textContent = [count(report.definitions.length, "definition"), count(report.kernels.length, "kernel"), "required: " + report.require].join(" · ");
at("heads").append(make("th", "", "Definition"));
for (const k of report.kernels) {
	const th = make("th", "", k.name);
	th.title = k.about;
	at("heads").append(th);
}

const changed = cell => cell.remarks.some(r => r.startsWith("changed: "));

function selected() {
	const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean), state = at("state").value;
	return report.definitions.filter(d => {
		const cells = Object.values(d.cells);
		if (state === "unmet" && cells.every(c => c.met)) return false;
		if (state === "changed" && !cells.some(changed)) return false;
		d.all ??= JSON.stringify([d.text, d.cells]).toLowerCase();
		return words.every(w => d.all.includes(w));
	});
}

function drawRows() {
	const rows = selected(), body = at("rows");
	at("count").textContent = rows.length + " of " + count(report.definitions.length, "definition");
	body.replaceChildren();
	for (const d of rows) {
		const tr = make("tr", "site");
		tr.tabIndex = 0;
		tr.append(make("td", "", d.text));
		for (const k of report.kernels) {
			const c = d.cells[k.name];
			const td = make("td", c ? c.met ? "fetched" : c.share === "none" ? "refused" : "missing" : "soft", c ? c.share + (changed(c) ? ", changed" : "") : "–");
			if (c) td.title = c.remarks.join("\n");
			tr.append(td);
		}
		tr.onclick = () => toggle(tr, d);
		tr.onkeydown = e => { if (e.key === "Enter") toggle(tr, d); };
		body.append(tr);
	}
}

function toggle(tr, d) {
	if (!tr.classList.toggle("open")) return tr.nextSibling.remove();
	const details = make("tr", "details"), td = make("td", "detail"), list = make("dl");
	td.colSpan = report.kernels.length + 1;
	for (const k of report.kernels) {
		const c = d.cells[k.name];
		if (!c) continue;
		list.append(make("dt", "", k.name), make("dd", c.met ? "fetched" : "missing", c.share === "none" ? "" : c.share + " of " + c.sites));
		for (const r of c.remarks) list.append(make("dt"), make("dd", "", r));
	}
	td.append(list);
	details.append(td);
	tr.after(details);
}

for (const id of ["find", "state"]) at(id).oninput = drawRows;
drawRows();
