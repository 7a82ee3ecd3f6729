// The time line of an episode: a cell a call, what struck it above, what was left of each budget below.

const KINDS = {
  answered: "answered",
  world: "refused by the tool",
  invalid_call: "invalid call",
  fault: "answered by a fault",
  out_of_budget: "out of budget",
};
const CELL = { width: 46, height: 26, gap: 3, left: 64 };
const LANE_HEIGHT = 22;
const LANE_GAP = 8;

function kindOf(call) {
  return call.failure ? call.failure.kind : "answered";
}

/** Draw the calls of an episode; a click on one goes to it. */
function timeline(calls, budget) {
  const bounded = Object.keys(budget).filter((name) => calls.some((call) => name in call.left));
  const lanes = bounded.filter((name) => !sameAsCalls(name, budget));
  const width = CELL.left + calls.length * (CELL.width + CELL.gap);
  const height = 24 + CELL.height + 16 + lanes.length * (LANE_HEIGHT + LANE_GAP);
  const picture = draw("svg", { width, height, role: "group", "aria-label": "Calls in order" });
  picture.append(draw("text", { x: 0, y: 24 + CELL.height / 2 + 4 }, "calls"));
  calls.forEach((call, at) => picture.append(...cell(call, at)));
  lanes.forEach((name, lane) => picture.append(...drained(name, lane, calls, budget[name])));
  return make("div", { class: "timeline", tabindex: "0" }, picture, key(calls));
}

// Where every call is a step and both have the same bound, one lane tells both.
function sameAsCalls(name, budget) {
  return name === "steps" && budget.steps === budget.calls;
}

function leftOf(at) {
  return CELL.left + at * (CELL.width + CELL.gap);
}

function cell(call, at) {
  const x = leftOf(at);
  const kind = kindOf(call);
  const go = () => byId(`call-${at + 1}`).scrollIntoView({ block: "center" });
  const said = `call ${at + 1}: ${call.tool}, ${KINDS[kind]}`;
  const box = { x, y: 24, width: CELL.width, height: CELL.height, rx: 4, class: "cell", onclick: go, "aria-label": said };
  const parts = [
    draw("g", { class: `kind-${kind}` }, draw("rect", box)),
    draw("text", { x: x + CELL.width / 2, y: 41, "text-anchor": "middle", class: "cell-number" }, String(at + 1)),
  ];
  if (call.faults) parts.push(bolt(x + CELL.width / 2, call));
  if (call.changes || call.changed) parts.push(stateDot(x + CELL.width / 2));
  return parts;
}

function bolt(x, call) {
  const said = call.faults.length === 1 ? "a fault struck this call" : `${call.faults.length} faults struck this call`;
  return draw("path", { d: `M${x + 2},2 l-7,10 h5 l-2,8 l7,-10 h-5 z`, class: "bolt", "aria-label": said });
}

function stateDot(x) {
  return draw("circle", { cx: x, cy: 24 + CELL.height + 8, r: 3, class: "dot", "aria-label": "the state changed" });
}

function drained(name, lane, calls, limit) {
  const top = 24 + CELL.height + 16 + lane * (LANE_HEIGHT + LANE_GAP);
  const parts = [draw("text", { x: 0, y: top + LANE_HEIGHT - 6 }, `${name.replaceAll("_", " ")} left`)];
  calls.forEach((call, at) => {
    const left = call.left[name];
    if (left === undefined) return;
    const tall = limit ? (LANE_HEIGHT * left) / limit : 0;
    const place = { x: leftOf(at), width: CELL.width };
    const said = `after call ${at + 1}: ${left} of ${limit} ${name} left`;
    parts.push(draw("rect", { ...place, y: top, height: LANE_HEIGHT, class: "track", "aria-label": said }));
    const bar = { ...place, y: top + LANE_HEIGHT - Math.max(tall, 2), height: Math.max(tall, 2) };
    parts.push(draw("rect", { ...bar, class: left ? "left" : "left gone", "aria-label": said }));
  });
  return parts;
}

function key(calls) {
  const present = Object.keys(KINDS).filter((kind) => calls.some((call) => kindOf(call) === kind));
  const entries = present.map((kind) => make("span", { class: `kind-${kind}` }, make("i"), KINDS[kind]));
  if (calls.some((call) => call.faults)) entries.push(make("span", {}, make("span", { class: "struck" }, "ϟ "), "struck by a fault"));
  if (calls.some((call) => call.changes || call.changed)) entries.push(make("span", {}, "● the state changed"));
  return make("p", { class: "key" }, entries);
}
