// The bars that payments must reach, computed only from figures: a figure that could not be measured misses its bar.
import { atLeast, atMost, type Bar } from "../rig/bars.ts"
import type { Case, Counted, Figures } from "./figures.ts"
import { median } from "./median.ts"

const ownCpu = ({ cpu }: Case): number => cpu.facilitator ?? Number.NaN
const databaseCpu = ({ cpu }: Case): number => cpu.database ?? Number.NaN

/**
 * The rate with a setting divided by the rate without it, when the facilitator's processor limits both. It is computed
 * per block of rounds, because both rates of a block had the same conditions, then the median.
 */
export const rateKept = (without: Case, withIt: Case): number =>
  median(without.cpuRounds.map((cpu, at) => (cpu ?? Number.NaN) / (withIt.cpuRounds[at] ?? Number.NaN)))

/**
 * The share of honest payments that were found valid: a refused one costs less, so it would make a figure meaningless.
 */
const validShare = (cases: ReadonlyArray<Case>): number =>
  Math.min(...cases.map(({ answers, outcomes }) => (outcomes["200 valid"] ?? 0) / answers))

/** The mean of an idle facilitator is subtracted, so a count may be off by this much per payment. */
const countSlack = 0.05

const counts = (name: string, { rpcCalls, statements }: Counted, rpcMax: number, statementsMax: number): Array<Bar> => [
  atMost(`${name}: RPC calls`, rpcCalls, rpcMax + countSlack),
  atMost(`${name}: SQL statements`, statements, statementsMax + countSlack)
]

const settledShare = ({ settling }: Figures["settle"]["ours"]): number => settling.settled / settling.sent

/** Per ledger: one poll for all open payments, and one for the ledger's time. */
const pollsPerLedger = 2

/** Maximum latency of a busy facilitator in milliseconds: one close plus its own time. */
const busyMillisMax = 1_300
const busyRateMin = 85

/** Only for the busy case. */
export const verifyBusy = (busy: NonNullable<Figures["busy"]>): ReadonlyArray<Bar> => [
  atLeast(`${busy.settling.channels} channels: settled a second`, busy.rate, busyRateMin),
  atMost(`${busy.settling.channels} channels: p50 ms`, busy.millis.p50, busyMillisMax),
  atLeast(`${busy.settling.channels} channels: settled of sent`, settledShare(busy), 1)
]

export const check = (figures: Figures): ReadonlyArray<Bar> => {
  const { busy, counted, open, refusals, settle, variants, verify } = figures
  const polls = (pollsPerLedger * counted.settle.ledgers) / counted.settle.payments
  const honest = [verify.ours, verify.class, open.ours, open.class, refusals.valid, ...Object.values(variants)]
  return [
    atLeast("honest payments found valid", validShare(honest), 1),
    atMost("verify: CPU of the class's", ownCpu(verify.ours) / ownCpu(verify.class), 0.3),
    atLeast("verify: throughput of the class's", verify.ours.rate / verify.class.rate, 2.5),
    ...counts("verify", counted.verify, 1, 0),
    atMost("malformed: CPU of a valid verify's", ownCpu(refusals.malformed) / ownCpu(refusals.valid), 0.2),
    ...counts("malformed", counted.malformed, 0, 0),
    atMost("badly signed: CPU of a valid verify's", ownCpu(refusals.badlySigned) / ownCpu(refusals.valid), 0.5),
    ...counts("badly signed", counted.badlySigned, 0, 0),
    atMost("settle: CPU of the class's", ownCpu(settle.ours) / ownCpu(settle.class), 0.5),
    atMost("settle: PostgreSQL's of the class's CPU", databaseCpu(settle.ours) / ownCpu(settle.class), 0.4),
    atMost("settle: RPC calls", counted.settle.rpcCalls, 2 + polls + countSlack),
    atLeast("settle: settled of sent", settledShare(settle.ours), 1),
    atLeast("settle: of the channels' bound", settle.ours.settling.ofBound, 0.95),
    atLeast("with metadata: rate kept", rateKept(variants.plain, variants.metadata), 0.9),
    atLeast("with OpenTelemetry at 0.1: rate kept", rateKept(variants.bare, variants.telemetry), 0.9),
    atLeast("with keys: rate kept", rateKept(variants.bare, variants.keys), 0.95),
    ...(busy === undefined ? [] : verifyBusy(busy))
  ]
}

/** Bars for this checkout against another one. */
export const verifyBeside = (
  verify: { readonly ours: Case; readonly before: Case },
  settle: Figures["settle"]
): ReadonlyArray<Bar> => [
  atLeast("honest payments found valid", validShare([verify.ours, verify.before]), 1),
  atMost("verify: CPU of the other checkout's", ownCpu(verify.ours) / ownCpu(verify.before), 1.03),
  atMost("settle: CPU of the other checkout's", ownCpu(settle.ours) / ownCpu(settle.class), 1.03),
  atLeast("settle: settled of sent", settledShare(settle.ours), 1)
]
