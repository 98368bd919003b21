// One case of the payments bench: a kind of payment sent to several subjects in many short rounds that alternate
// between them, so that changes in the machine's load affect all of them. The time of all rounds is divided by all
// answers. Each payment is sent to a facilitator once; the work after the last answer counts too.
import { familyMillis, pause, processorMillis } from "../rig/processes.ts"
import type { Case, Cpu, Settling } from "./figures.ts"
import { median } from "./median.ts"
import type { PaymentKind, SendFigures, SendOrder } from "./orders.ts"
import type { Subject, World } from "./world.ts"

/** Work after an answer (a listing, a batch of log lines) is done within this time, and is counted. */
const afterMillis = 300
/** The same between short rounds: time for a batch of log lines. */
const betweenMillis = 50
/** The delayed writes of payments, each second, are done within this time. */
const behindMillis = 1_200

/** Payments signed at a time, and their maximum age: they live for sixty ledgers. */
const signedMax = 600
const signedMillisMax = 20_000

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

/** Sends, and reads the processor times of all processes before and after. */
export const measureRound = async (
  world: Pick<World, "clients" | "databasePid" | "ledgerPid">,
  subject: Subject,
  order: Omit<SendOrder, "order" | "port">,
  waitMillis = afterMillis
): Promise<Round> => {
  const clocks = () => [processorMillis(subject.pid), familyMillis(world.databasePid), processorMillis(world.ledgerPid)]
  const before = clocks()
  const figures = await world.clients.send({ ...order, port: subject.port })
  await pause(waitMillis)
  const [facilitator, database, ledger] = clocks().map((now, at) => known((now - before[at]!) / figures.answers))
  return {
    ...figures,
    cpu: { facilitator: facilitator!, database: database!, ledger: ledger!, clients: known(figures.clientCpu) }
  }
}

/** Time of all rounds, per answer. */
export const perAnswer = (rounds: ReadonlyArray<Round>, of: (cpu: Cpu) => number | null): number | null => {
  const millis = rounds.reduce((sum, { answers, cpu }) => sum + (of(cpu) ?? Number.NaN) * answers, 0)
  return known(millis / rounds.reduce((sum, { answers }) => sum + answers, 0))
}

/** The rounds of one contender as one case: total processor time, and the medians of rates and latencies. */
export const together = (name: string, subject: string, rounds: ReadonlyArray<Round>): Case => {
  const outcomes: Record<string, number> = {}
  for (const round of rounds)
    for (const [what, count] of Object.entries(round.outcomes)) outcomes[what] = (outcomes[what] ?? 0) + count
  const of = (pick: (round: Round) => number) => median(rounds.map(pick))
  const cpu = (caller: keyof Cpu) => perAnswer(rounds, (cpu) => cpu[caller])
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

export interface Turns {
  readonly rounds: number
  /** Payments of a round. */
  readonly count: number
  readonly clients: number
}

/** Reads before the first round of payments that are signed together, and after the last. */
interface Block {
  readonly begin: () => void
  /** Called with the number of rounds. */
  readonly end: (rounds: number) => Promise<void>
  /** Between rounds. */
  readonly waitMillis: number
}

/** Verifies of several contenders, alternating forwards and backwards. */
const takeTurns = async (
  world: World,
  contenders: ReadonlyArray<Contender>,
  { clients, count, rounds }: Turns,
  step: (what: string) => void,
  { begin, end, waitMillis }: Block
): Promise<ReadonlyArray<ReadonlyArray<Round>>> => {
  const measured = contenders.map((): Array<Round> => [])
  const blockMax = Math.max(1, Math.floor(signedMax / count))
  const names = [...new Set(contenders.map(({ name }) => name))].join(", ")
  const send = ({ key, kind, subject }: Contender, place: number) => {
    const sent = { pool: kind, path: "/verify" as const, from: place * count, count, load: { clients } }
    return measureRound(world, subject, key === undefined ? sent : { ...sent, key }, waitMillis)
  }
  for (let round = 0; round < rounds;) {
    const block = Math.min(blockMax, rounds - round)
    step(`${names}: round ${round + 1} of ${rounds}`)
    for (const kind of new Set(contenders.map(({ kind }) => kind))) await signed(world, kind, block * count)
    const signedAt = performance.now()
    begin()
    let place = 0
    for (; place < block && performance.now() - signedAt < signedMillisMax; place++, round++) {
      const order = contenders.map((_, at) => at)
      for (const at of round % 2 === 0 ? order : order.toReversed())
        measured[at]!.push(await send(contenders[at]!, place))
    }
    await end(place)
  }
  return measured
}

/** Verifies of several contenders, alternating. */
export const alternate = async (
  world: World,
  contenders: ReadonlyArray<Contender>,
  turns: Turns,
  step: (what: string) => void
): Promise<ReadonlyArray<Case>> => {
  const block = { begin: () => {}, end: async () => {}, waitMillis: betweenMillis }
  const measured = await takeTurns(world, contenders, turns, step, block)
  return contenders.map(({ name, subject }, at) => together(name, subject.name, measured[at]!))
}

/**
 * The same for contenders that each run in a separate process and differ in one setting. The setting's cost occurs at
 * any time, in batches, even during the others' rounds. So the total work of a process from a block's first round until
 * a second after its last counts as its own. Its idle work in that time is counted too, and is the same for all. A
 * figure of a round is here that of a block.
 */
export const alternateWhole = async (
  world: World,
  contenders: ReadonlyArray<Contender>,
  turns: Turns,
  step: (what: string) => void
): Promise<ReadonlyArray<Case>> => {
  const clocks = () => contenders.map(({ subject }) => processorMillis(subject.pid))
  const spent = contenders.map((): Array<number> => [])
  let before = clocks()
  const measured = await takeTurns(world, contenders, turns, step, {
    begin: () => {
      before = clocks()
    },
    end: async (rounds) => {
      await pause(behindMillis)
      for (const [at, now] of clocks().entries()) spent[at]!.push((now - before[at]!) / (rounds * turns.count))
    },
    waitMillis: 0
  })
  return contenders.map(({ name, subject }, at) => {
    const one = together(name, subject.name, measured[at]!)
    return { ...one, cpu: { ...one.cpu, facilitator: known(median(spent[at]!)) }, cpuRounds: spent[at]!.map(known) }
  })
}

/** Freshly signed payments of a kind; the pool has the kind's name. */
export const signed = ({ clients, ledgerUrl, payTo, payers }: World, kind: PaymentKind, count: number) =>
  clients.sign({ pool: kind, kind, count, ledgerUrl, payers, payTo })

/** The ledgers with a round's settlements, as the ledger reports them. */
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
