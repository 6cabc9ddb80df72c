"use strict";
// All texts are set as text: names in an image are anybody's choice.
const at = id => document.getElementById(id);
function make(tag, className, text) {
	const e = document.createElement(tag);
	if (className) e.className = className;
	if (text !== undefined) e.textContent = text;
	return e;
}
const count = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");
