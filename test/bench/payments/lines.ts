// The printed figures of the payments bench, part by part: if a part fails, those before it are still printed.
import { rateKept } from "./bars.ts"
import type { Case, Counted, Figures, Settling } from "./figures.ts"

/** The parts measured so far. */
export type Measured = { -readonly [Part in keyof Figures]?: Figures[Part] }

const short = (value: number | null): string => (value === null ? "unknown" : value.toFixed(2))

const caseLine = (name: string, { answers, cpu, millis, outcomes, rate, subject }: Case): string =>
  `  ${`${name}, ${subject}`.padEnd(36)} ${rate.toFixed(1).padStart(7)}/s   ` +
  `ms p50 ${millis.p50.toFixed(0)}, p95 ${millis.p95.toFixed(0)}, p99 ${millis.p99.toFixed(0)}   ` +
  `CPU ms: ${short(cpu.facilitator)} facilitator, ${short(cpu.database)} database, ${short(cpu.ledger)} ledger, ` +
  `${short(cpu.clients)} clients   ${answers}: ${Object.entries(outcomes)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ")}`

const countedLine = (name: string, { rpc, rpcCalls, roundTrips, statements }: Counted): string =>
  `  ${name.padEnd(36)} ${rpcCalls.toFixed(2)} RPC calls (${Object.entries(rpc)
    .map(([method, calls]) => `${method} ${calls.toFixed(2)}`)
    .join(", ")}), ${statements.toFixed(2)} statements in ${roundTrips.toFixed(2)} round trips`

/** The facilitator's total processor time, divided by the settled payments only. */
const perSettled = ({ cpu, settling }: Case & { readonly settling: Settling }): string =>
  short(cpu.facilitator === null ? null : (cpu.facilitator * settling.sent) / settling.settled)

export const settleLines = (one: Case & { readonly settling: Settling }): ReadonlyArray<string> => [
  caseLine("settle", one),
  `    ${one.settling.settled} of ${one.settling.sent} settled in ${one.settling.ledgers} ledgers, ` +
    `${one.settling.ofBound.toFixed(3)} of what ${one.settling.channels} accounts carry; ` +
    `${perSettled(one)} CPU ms per settled one`
]

/** A client-side measurement: printed next to the figure with a bar, since it depends on the machine's load. */
const besideLine = (name: string, without: Case, withIt: Case): string =>
  `  ${`rate with ${name}, of that without`.padEnd(36)} ${(withIt.rate / without.rate).toFixed(3).padStart(7)}`

/** The part of the metadata's cost that its size explains. */
const sizeLine = ({ plain, unread }: Figures["variants"]): string =>
  `  ${"kept with unread metadata, by CPU".padEnd(36)} ${rateKept(plain, unread).toFixed(3).padStart(7)}`

/** The part of a refusal that no facilitator can save, as a share of a valid verify. */
const floorLine = (refusals: Figures["refusals"], signatureMillis: number): string => {
  const valid = refusals.valid.cpu.facilitator ?? Number.NaN
  const alone = refusals.answeringAlone.cpu.facilitator ?? Number.NaN
  const share = (millis: number) => (millis / valid).toFixed(3)
  const parts = [
    `${share(alone)} to read JSON and answer`,
    `${share(signatureMillis)} to check a signature (${signatureMillis.toFixed(3)} ms)`,
    `${share(alone + signatureMillis)} both`
  ]
  return `    of a valid verify's: ${parts.join(", ")}`
}

const variantLines = (variants: Figures["variants"]) => [
  ...Object.entries(variants).map(([name, one]) => caseLine(`variant: ${name}`, one)),
  besideLine("keys", variants.bare, variants.keys),
  besideLine("telemetry", variants.bare, variants.telemetry),
  besideLine("metadata", variants.plain, variants.metadata),
  sizeLine(variants)
]

export const lines = ({ busy, counted, open, refusals, settle, signatureMillis, variants, verify }: Measured) => [
  ...(verify === undefined ? [] : [verify.ours, verify.class].map((one) => caseLine("verify", one))),
  ...(open === undefined
    ? []
    : [open.ours, open.class].map((one) => caseLine(`verify at ${open.perSecond} a second`, one))),
  ...(refusals === undefined
    ? []
    : [
        ...Object.entries(refusals).map(([name, one]) => caseLine(`refusals: ${name}`, one)),
        floorLine(refusals, signatureMillis ?? Number.NaN)
      ]),
  ...(variants === undefined ? [] : variantLines(variants)),
  ...(settle === undefined ? [] : [caseLine("settle, cold", settle.cold)]),
  ...[settle?.ours, settle?.class, busy].flatMap((one) => (one === undefined ? [] : settleLines(one))),
  ...Object.entries(counted ?? {}).map(([name, one]) => countedLine(`counted: ${name}`, one))
]

/** Prints all measurements, even if a later part fails; then the bench fails too. */
export const printing = async (
  measure: (measured: Measured) => Promise<void>,
  say: (line: string) => void
): Promise<Figures> => {
  const measured: Measured = {}
  try {
    await measure(measured)
  } finally {
    for (const line of lines(measured)) say(line)
  }
  return measured as Figures
}
