// The consequences of each answer to a submission. None of them ends the settlement.
import { Effect, Layer, Logger, References } from "effect"
import { SqlError } from "effect/sql"
import { describe, expect, it } from "vitest"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable } from "../../../../kernel/ledger/LedgerRpc.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { makeSubmitAttempt } from "../../../../kernel/settlement/follower/submitAttempt.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { layerTest } from "../../../support/layerTest.ts"

type SendAnswer = Effect.Success<ReturnType<LedgerRpc["Service"]["send"]>>

const time = {
  sequence: 1_001,
  closedAtSeconds: 0,
  secondsPerLedger: 5,
  fastestSecondsPerLedger: 5,
  isFirstWord: false
}
const cut = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("cut") }) })
const silent = new LedgerUnavailable({ operation: "getLatestLedger", message: "silent" })

/** Submits one attempt and returns its ledger, its calls and its log lines. */
const submit = async (answer: SendAnswer, { number = 1, isCut = false, isSilent = false } = {}) => {
  const calls: Array<unknown> = []
  const lines: Array<Record<string, unknown>> = []
  const call = (...words: ReadonlyArray<unknown>) => Effect.sync(() => void calls.push(words))
  const logger = Logger.make<unknown, void>(({ fiber }) => {
    lines.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  const ports = Layer.mergeAll(
    layerTest(LedgerRpc, { send: () => Effect.succeed(answer) }),
    layerTest(LedgerClock, {
      now: isSilent ? Effect.fail(silent) : Effect.succeed(time),
      noteAsked: (stroops) => call("noteAsked", stroops)
    }),
    layerTest(ChannelStore, { distrust: (ledger) => (isCut ? Effect.fail(cut) : call("distrust", ledger)) }),
    layerTest(Sponsor, { suspect: call("suspect") }),
    layerTest(Settlements, {
      noteSent: (...sent) => (isCut ? Effect.fail(cut) : call("noteSent", ...sent))
    }),
    Logger.layer([logger])
  )
  const attempt = { number, envelope: "AAAA", outerHash: "outer", recordedLedger: 1_000 }
  const ledger = await makeSubmitAttempt.pipe(
    Effect.flatMap((submitting) => submitting("one", attempt)),
    Effect.provide(ports),
    Effect.runPromise
  )
  return { ledger, calls, lines }
}

const sent = (status: string, code?: string, number = 1) => [
  "noteSent",
  "one",
  number,
  { status, code, ledger: 1_001, outerHash: "outer" }
]
const refused = (code: string, askedStroops?: bigint): SendAnswer => ({
  _tag: "Error",
  code,
  ...(askedStroops === undefined ? {} : { askedStroops })
})

describe("a submission", () => {
  it("is recorded without a log line if accepted", async () => {
    expect(await submit({ _tag: "Pending" })).toEqual({ ledger: 1_001, calls: [sent("Pending")], lines: [] })
  })

  it("is logged and recorded if lost", async () => {
    const { calls, lines } = await submit({ _tag: "Lost", message: "timeout" })
    expect(calls).toEqual([sent("Lost")])
    expect(lines).toEqual([{ settlement: "one", attempt: 1, answer: "Lost", why: "timeout" }])
  })

  it.each([
    ["txBadSeq", ["distrust", 1_001]],
    ["txInsufficientBalance", ["suspect"]]
  ] as const)("refused with %s changes what is believed", async (code, call) => {
    const { calls, lines } = await submit(refused(code))
    expect(calls).toEqual([call, sent("Error", code)])
    expect(lines).toEqual([{ settlement: "one", attempt: 1, answer: "Error", why: code }])
  })

  it("teaches the network's fee only by its first bid", async () => {
    const fee = refused("txInsufficientFee", 700n)
    expect((await submit(fee)).calls).toEqual([["noteAsked", 700n], sent("Error", "txInsufficientFee")])
    expect((await submit(fee, { number: 2 })).calls).toEqual([sent("Error", "txInsufficientFee", 2)])
    expect((await submit(refused("txInsufficientFee"))).calls).toEqual([sent("Error", "txInsufficientFee")])
  })

  it("keeps its ledger if the database or the clock fails", async () => {
    expect(await submit(refused("txBadSeq"), { isCut: true })).toMatchObject({ ledger: 1_001, calls: [] })
    expect((await submit({ _tag: "Pending" }, { isSilent: true })).ledger).toBe(1_000)
  })
})
