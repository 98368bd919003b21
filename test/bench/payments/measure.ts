// One case of the bench of payments: what is sent, to whom, in rounds that alternate between the subjects so that the
// machine's moods fall on all of them. Each payment is sent to a facilitator once; what a facilitator still does for
// it shortly after the last answer counts as well.
import { familyMillis, pause, processorMillis } from "../rig/processes.ts"
import type { Case, Cpu, Settling } from "./figures.ts"
import type { PaymentKind, SendFigures, SendOrder } from "./orders.ts"
import type { Subject, World } from "./world.ts"

/** What follows an answer (a listing, a batch of log lines) is done within this, and is counted. */
const afterMillis = 300

export interface Contender {
  readonly name: string
  readonly subject: Subject
  readonly kind: PaymentKind
  readonly key?: string
}

export interface Round extends SendFigures {
  readonly cpu: Cpu
}

const known = (value: number): number | null => (Number.isFinite(value) ? value : null)

/** Sends and reads the clocks of every process around it. */
export const measureRound = async (
  world: World,
  subject: Subject,
  order: Omit<SendOrder, "order" | "port">
): Promise<Round> => {
  const clocks = () => [processorMillis(subject.pid), familyMillis(world.databasePid), processorMillis(world.ledgerPid)]
  const before = clocks()
  const figures = await world.clients.send({ ...order, port: subject.port })
  await pause(afterMillis)
  const [facilitator, database, ledger] = clocks().map((now, at) => known((now - before[at]!) / figures.answers))
  return {
    ...figures,
    cpu: { facilitator: facilitator!, database: database!, ledger: ledger!, clients: known(figures.clientCpu) }
  }
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  return sorted.length === 0
    ? Number.NaN
    : (sorted[Math.ceil(half) - 1]! + sorted[Math.min(sorted.length - 1, Math.floor(half))]!) / 2
}

const medianOf = (values: ReadonlyArray<number | null>): number | null =>
  known(median(values.map((value) => value ?? Number.NaN)))

/** The rounds of one contender as one case: medians, so that one round beside a busy neighbour does not decide. */
export const together = (name: string, subject: string, rounds: ReadonlyArray<Round>): Case => {
  const outcomes: Record<string, number> = {}
  for (const round of rounds)
    for (const [what, count] of Object.entries(round.outcomes)) outcomes[what] = (outcomes[what] ?? 0) + count
  const of = (pick: (round: Round) => number) => median(rounds.map(pick))
  const cpu = (who: keyof Cpu) => medianOf(rounds.map((round) => round.cpu[who]))
  return {
    name,
    subject,
    answers: rounds.reduce((sum, { answers }) => sum + answers, 0),
    rate: of(({ rate }) => rate),
    rates: rounds.map(({ rate }) => rate),
    millis: {
      p50: of(({ millis }) => millis.p50),
      p95: of(({ millis }) => millis.p95),
      p99: of(({ millis }) => millis.p99)
    },
    curve: Array.from({ length: 101 }, (_, at) => of(({ curve }) => curve[at]!)),
    cpu: {
      facilitator: cpu("facilitator"),
      database: cpu("database"),
      ledger: cpu("ledger"),
      clients: cpu("clients")
    },
    cpuRounds: rounds.map((round) => round.cpu.facilitator),
    outcomes
  }
}

/** Verifies of several contenders in turns, forwards and backwards; payments are signed anew for each round. */
export const alternate = async (
  world: World,
  contenders: ReadonlyArray<Contender>,
  { clients, count, rounds }: { readonly rounds: number; readonly count: number; readonly clients: number },
  step: (what: string) => void
): Promise<ReadonlyArray<Case>> => {
  const measured = contenders.map((): Array<Round> => [])
  for (let round = 0; round < rounds; round++) {
    step(`${[...new Set(contenders.map(({ name }) => name))].join(", ")}: round ${round + 1} of ${rounds}`)
    for (const kind of new Set(contenders.map(({ kind }) => kind))) await signed(world, kind, count)
    const order = contenders.map((_, at) => at)
    for (const at of round % 2 === 0 ? order : order.toReversed()) {
      const { key, kind, subject } = contenders[at]!
      measured[at]!.push(
        await measureRound(world, subject, {
          pool: kind,
          path: "/verify",
          from: 0,
          count,
          load: { clients },
          ...(key === undefined ? {} : { key })
        })
      )
    }
  }
  return contenders.map(({ name, subject }, at) => together(name, subject.name, measured[at]!))
}

/** Payments of a kind, signed just now; the pool has the kind's name. */
export const signed = ({ clients, ledgerUrl, payTo, payers }: World, kind: PaymentKind, count: number) =>
  clients.sign({ pool: kind, kind, count, ledgerUrl, payers, payTo })

/** In which ledgers a round's settlements stand, by the ledger's own word. */
export const settlingOf = async (world: World, rounds: ReadonlyArray<Round>, channels: number): Promise<Settling> => {
  let ledgers = 0
  for (const { settled } of rounds) {
    const found: Array<number> = []
    for (const hash of settled) found.push((await world.rpc("getTransaction", { hash })).ledger as number)
    if (found.length > 0) ledgers += Math.max(...found) - Math.min(...found) + 1
  }
  const settled = rounds.reduce((sum, round) => sum + round.settled.length, 0)
  const sent = rounds.reduce((sum, { answers }) => sum + answers, 0)
  return { settled, sent, channels, ledgers, ofBound: settled / (channels * ledgers) }
}
