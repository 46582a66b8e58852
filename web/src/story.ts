// A packet's story, told by its bytes: sent, lost, sent again by whom and why, arrived,
// acknowledged. One sentence, and the steps it is made of.

import type { Column } from "./data";
import { grouped } from "./numbers";
import type { Panel, Story } from "./timeline";

export interface Step {
  at: number;
  text: string;
  /** The row of the specification that acted. */
  rule: string | null;
  /** How often in a row, and until when. */
  times: number;
  until: number;
}

export interface Tale {
  /** Bytes of the stream, the end excluded. */
  start: number;
  end: number;
  sentence: string;
  steps: Step[];
  /** From its first step to its last, in seconds. */
  from: number;
  until: number;
}

/** What in a scheme made it send again. */
const OCCASIONS: Record<string, string> = {
  "SNOOP-ACK-7": "on an unexpected duplicate ACK",
  "SNOOP-TMR-2": "because the local round-trip timer ran out",
  "SNOOP-TMR-5": "because of the silence",
  "SNOOP-DATA-3": "because the sender did",
  "MOD-1": "because what came after it was acknowledged",
  RESTART: "to find out whether the link is back",
};

const LOSSES: Record<string, string> = {
  outage: "the link was away",
  bit_error: "bit error",
  packet_loss: "random loss",
  burst: "burst of losses",
  fade: "fade",
  arq: "the radio gave up repeating it",
  run: "run of losses",
  recorded: "the recording lost it",
  "out of cell": "who was to get it was not in the cell",
};

export const lossName = (cause: string): string => LOSSES[cause] ?? cause;

/** The bytes of the segment that first carried this byte; null if the story has none. */
export function segmentOf({ offset, length }: Story, byte: number): [number, number] | null {
  let best: [number, number] | null = null;
  for (let i = 0; i < offset.length; i++) {
    const start = offset[i] as number;
    const end = start + (length[i] as number);
    // A probe carries one byte of a whole segment: the longest tells.
    if (start <= byte && byte < end && (!best || end - start > best[1] - best[0])) best = [start, end];
  }
  return best;
}

export function tell(panel: Panel, byte: number): Tale | null {
  const bytes = segmentOf(panel.story, byte);
  return bytes ? new Teller(panel, bytes).tale() : quiet(panel, byte);
}

/** Of bytes to which nothing happened, a page of a large transfer keeps no steps. */
function quiet({ marks, story }: Panel, byte: number): Tale | null {
  const sent = marks.data.offset.findIndex((offset) => offset > byte);
  if (story.complete || sent < 0) return null;
  const end = marks.data.offset[sent] as number;
  const from = marks.data.at[sent] as number;
  const acked = firstBeyond(marks.acks.offset, end);
  const until = acked < 0 ? from : (marks.acks.at[acked] as number);
  const tail = acked < 0 ? "" : `, acknowledged ${span(until - from)} later`;
  const sentence = `Sent at ${seconds(from)}, arrived at the first attempt${tail}.`;
  const start = sent > 0 ? (marks.data.offset[sent - 1] as number) : 0;
  return { start, end, sentence, steps: [], from, until };
}

class Teller {
  private readonly steps: Step[] = [];
  /** The clauses of the sentence. */
  private readonly clauses: string[] = [];
  private readonly copies = new Map<number, number>();
  private lostAt = Number.NaN;
  private arrived = false;
  private sentAt = Number.NaN;

  constructor(private readonly panel: Panel, private readonly bytes: [number, number]) {
    const { story } = panel;
    const [start, end] = bytes;
    for (let i = 0; i < story.id.length; i++) {
      const length = story.length[i] as number;
      const offset = story.offset[i] as number;
      if (offset < end && offset + length > start) this.copies.set(story.id[i] as number, i);
    }
  }

  tale(): Tale {
    const { steps } = this.panel.story;
    const [start, end] = this.bytes;
    for (let i = 0; i < steps.at.length; i++) {
      const copy = this.copies.get(steps.packet[i] as number);
      if (copy !== undefined) this.onPacket(i, copy);
      else if (steps.offset[i] === start) this.onReport(i);
    }
    this.end();
    const sentence = this.clauses.length > 0 ? `${capital(this.clauses.join("; "))}.` : "Nothing is known of it.";
    const [first, last] = [this.steps[0], this.steps[this.steps.length - 1]];
    return { start, end, sentence, steps: this.steps, from: first?.at ?? 0, until: last?.until ?? 0 };
  }

  private onPacket(i: number, copy: number): void {
    const { story } = this.panel;
    const at = story.steps.at[i] as number;
    const node = story.steps.node[i] as number;
    const id = `packet ${grouped(String(story.id[copy]))}`;
    const detail = story.texts[story.steps.text[i] as number] ?? "";
    const sender = node === story.sender;
    switch (story.deeds[story.steps.deed[i] as number]) {
      case "sent":
        if (sender || this.isAgents(copy)) this.onSent(i, copy, id);
        else this.add(at, `The ${this.machine(node)} passes ${id} on`);
        break;
      case "departed":
        this.add(at, `The ${this.machine(node)} begins to send ${id} on the air`);
        break;
      case "arrived":
        if (node !== story.receiver) break;
        this.add(at, `${capital(id)} reaches the ${this.machine(node)}`);
        if (!this.arrived) {
          this.clauses.push(`arrived at the ${this.machine(node)} ${span(at - this.sentAt)} after that`);
        }
        this.arrived = true;
        break;
      case "lost":
        this.add(at, `${capital(id)} is lost on the air: ${lossName(detail)}`);
        this.clauses.push(`lost on the air (${lossName(detail)}) at ${seconds(at)}`);
        this.lostAt = at;
        break;
      case "queue-full":
        this.add(at, `The queue of the ${this.machine(node)} is full: ${id} is dropped`);
        this.clauses.push(`dropped by the full queue of the ${this.machine(node)} at ${seconds(at)}`);
        this.lostAt = at;
        break;
      case "discarded":
        this.add(at, `The ${this.machine(node)} lets ${id} go`, ruleOf(detail));
        this.clauses.push(`stopped by the ${this.machine(node)} (${detail})`);
        this.lostAt = at;
        break;
      case "rule":
        this.onRule(at, detail);
    }
  }

  /** The sender sends, or an agent sends again. */
  private onSent(i: number, copy: number, id: string): void {
    const { story } = this.panel;
    const at = story.steps.at[i] as number;
    const who = this.machine(story.steps.node[i] as number);
    this.sentAt = at;
    if (this.clauses.length === 0) {
      this.add(at, `The ${who} sends ${id}`);
      this.clauses.push(`sent by the ${who} at ${seconds(at)}`);
      return;
    }
    const [why, rule] = this.isAgents(copy) ? this.agentsReason(i) : this.sendersReason(at);
    const later = Number.isNaN(this.lostAt) ? `at ${seconds(at)}` : `${span(at - this.lostAt)} later`;
    const verb = story.causes[story.cause[copy] as number] === "probe" ? "probes with them" : "sends them again";
    this.add(at, `The ${who} ${verb} as ${id}, ${why}`, rule);
    const sent = verb.startsWith("probes") ? "sent as a probe" : "sent again";
    this.clauses.push(`${sent} by the ${who} ${later}, ${why}${rule ? ` (${rule})` : ""}`);
  }

  /** The rule that acted at the instant of a local retransmission. */
  private agentsReason(i: number): [string, string | null] {
    const { steps, texts, deeds } = this.panel.story;
    const isRule = (j: number) =>
      deeds[steps.deed[j] as number] === "rule" && steps.node[j] === steps.node[i];
    let found: string | null = null;
    for (const way of [-1, 1]) {
      for (let j = i + way; steps.at[j] === steps.at[i]; j += way) {
        const rule = isRule(j) ? ruleOf(texts[steps.text[j] as number] ?? "") : null;
        if (!rule) continue;
        // A rule about these very bytes tells more than any other of the same instant.
        if (steps.offset[j] === this.bytes[0]) return [OCCASIONS[rule] ?? "by its rule", rule];
        found ??= rule;
      }
    }
    if (found) return [OCCASIONS[found] ?? "by its rule", found];
    // The later steps of a restart follow from ACKs of the earlier ones and are not reported.
    for (let j = i; j >= 0; j--) {
      if (isRule(j) && ruleOf(texts[steps.text[j] as number] ?? "") === "RESTART") {
        return [`in the restart that began at ${seconds(steps.at[j] as number)}`, "RESTART"];
      }
    }
    return ["for a reason that is not seen from outside", null];
  }

  /** What made the sender send again: its timer, or duplicate ACKs. */
  private sendersReason(at: number): [string, null] {
    const { steps, deeds } = this.panel.story;
    let found = -1;
    for (let j = 0; j < steps.at.length && (steps.at[j] as number) <= at; j++) {
      const deed = deeds[steps.deed[j] as number];
      if (deed === "timeout" || deed === "fast-retransmit") found = j;
    }
    if (found < 0) return ["in recovery", null];
    const since = steps.at[found] as number;
    const timeout = deeds[steps.deed[found] as number] === "timeout";
    const what = timeout ? "its retransmission timer" : "duplicate ACKs or SACK blocks";
    if (since === at) return [timeout ? "because its retransmission timer ran out" : `because of ${what}`, null];
    return [`in the recovery that ${what} began at ${seconds(since)}`, null];
  }

  private onReport(i: number): void {
    const { steps, texts, deeds, sender } = this.panel.story;
    const at = steps.at[i] as number;
    const who = this.machine(sender);
    switch (deeds[steps.deed[i] as number]) {
      case "timeout":
        return this.add(at, `The retransmission timer of the ${who} runs out`);
      case "fast-retransmit":
        return this.add(at, `The ${who} begins its recovery with these bytes`);
      case "rule":
        this.onRule(at, texts[steps.text[i] as number] ?? "");
    }
  }

  private onRule(at: number, text: string): void {
    const rule = ruleOf(text);
    const did = rule ? text.slice(rule.length + 2) : text;
    const about = did.startsWith("suppressed") || did.startsWith("forwarded") ? "a duplicate ACK for it is " : "";
    this.add(at, `Base station: ${about}${did}`, rule);
  }

  /** Delivery and acknowledgement, from the marks. */
  private end(): void {
    const { marks, story } = this.panel;
    const [, end] = this.bytes;
    const delivered = firstBeyond(marks.delivered.offset, end);
    if (delivered >= 0) this.add(marks.delivered.at[delivered] as number, "All bytes up to these are delivered in order");
    const acked = firstBeyond(marks.acks.offset, end);
    if (acked >= 0) {
      const at = marks.acks.at[acked] as number;
      this.add(at, `Their ACK reaches the ${this.machine(story.sender)}`);
      this.clauses.push(`acknowledged at ${seconds(at)}`);
    } else this.clauses.push("not acknowledged by the end of the run");
    this.steps.sort((a, b) => a.at - b.at);
  }

  private add(at: number, text: string, rule: string | null = null): void {
    const same = this.steps[this.steps.length - 1];
    if (same?.text === text && same.rule === rule) {
      same.times++;
      same.until = at;
    } else this.steps.push({ at, text, rule, times: 1, until: at });
  }

  private isAgents(copy: number): boolean {
    const { cause, causes } = this.panel.story;
    return ["local", "probe"].includes(causes[cause[copy] as number] ?? "");
  }

  private machine(node: number): string {
    const { story: { sender, receiver }, roaming } = this.panel;
    if (node !== sender && node !== receiver) {
      return roaming ? `base station ${node - roaming.firstStation}` : "base station";
    }
    // Machines are numbered from the wired side on.
    return node === Math.min(sender, receiver) ? "fixed host" : "mobile host";
  }
}

/** The place of the first mark at or beyond an offset; -1 if there is none. */
function firstBeyond(offsets: Column, offset: number): number {
  return offsets.findIndex((value) => value >= offset);
}

/** "SNOOP-ACK-7: suppressed" names a rule, "bit_error" does not. */
const ruleOf = (text: string): string | null => text.match(/^[A-Z]+(-[A-Z0-9]+)*(?=: |$)/)?.[0] ?? null;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const seconds = (value: number): string => `${value.toFixed(6)} s`;

export const span = (value: number): string =>
  value < 1e-3 ? `${(value * 1e6).toFixed(0)} µs` : value < 1 ? `${(value * 1e3).toFixed(1)} ms` : `${value.toFixed(3)} s`;
