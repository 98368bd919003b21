// The bars of payments hold only if every figure reaches them; an unknown figure reaches none.
import { describe, expect, it } from "vitest"
import { barLine } from "../rig/bars.ts"
import { check } from "./bars.ts"
import type { Case, Counted, Figures, Settling } from "./figures.ts"

const oneCase = (cpu: number | null, rate = 100, database = 0): Case => ({
  name: "case",
  subject: "subject",
  answers: 100,
  rate,
  rates: [rate],
  millis: { p50: 10, p95: 20, p99: 30 },
  curve: Array.from({ length: 101 }, () => 1),
  cpu: { facilitator: cpu, database, ledger: 1, clients: 1 },
  cpuRounds: [cpu],
  outcomes: { "200 valid": 100 }
})

const settling = (settled: number, ledgers: number): Settling => ({
  settled,
  sent: 400,
  channels: 20,
  ledgers,
  ofBound: settled / (20 * ledgers)
})

const counted = (rpcCalls: number, statements: number): Counted => ({
  payments: 400,
  rpc: {},
  rpcCalls,
  statements,
  roundTrips: statements,
  ledgers: 20
})

/** Figures that reach every bar exactly. */
const reached: Figures = {
  verify: { ours: oneCase(0.3, 250), class: oneCase(1, 100) },
  open: { perSecond: 50, ours: oneCase(0.3), class: oneCase(1) },
  refusals: { valid: oneCase(1), malformed: oneCase(0.2), badlySigned: oneCase(0.5), answeringAlone: oneCase(0.1) },
  signatureMillis: 0.1,
  variants: {
    bare: oneCase(0.9),
    keys: oneCase(0.94),
    telemetry: oneCase(1),
    plain: oneCase(0.9),
    metadata: oneCase(1),
    unread: oneCase(0.95)
  },
  settle: {
    ours: { ...oneCase(5, 20, 4), settling: settling(400, 21) },
    class: { ...oneCase(10, 20), settling: settling(120, 20) },
    cold: oneCase(8, 20)
  },
  counted: {
    verify: counted(1, 0),
    malformed: counted(0, 0),
    badlySigned: counted(0, 0),
    settle: counted(2.15, 20),
    classVerify: counted(2, 0),
    classSettle: counted(5, 0)
  },
  busy: { ...oneCase(5, 85), settling: { settled: 400, sent: 400, channels: 100, ledgers: 5, ofBound: 0.8 } }
}

const missed = (figures: Figures) =>
  check(figures)
    .filter(({ holds }) => !holds)
    .map(({ name }) => name)

describe("the bars of payments", () => {
  it("hold when each figure just reaches its own", () => {
    expect(missed(reached)).toEqual([])
  })

  it("are missed one by one, each by its own figure", () => {
    const { counted: calls, open, refusals, settle, variants, verify } = reached
    const expired = { "200 valid": 99, "200 invalid_stellar_auth_expired": 1 }
    const cases: ReadonlyArray<readonly [Partial<Figures>, string]> = [
      [{ open: { ...open, class: { ...open.class, outcomes: expired } } }, "honest payments found valid"],
      [{ variants: { ...variants, keys: { ...variants.keys, outcomes: expired } } }, "honest payments found valid"],
      [{ verify: { ...verify, ours: oneCase(0.31, 250) } }, "verify: CPU of the class's"],
      [{ verify: { ...verify, ours: oneCase(0.3, 249) } }, "verify: throughput of the class's"],
      [{ counted: { ...calls, verify: counted(1.1, 0) } }, "verify: RPC calls"],
      [{ counted: { ...calls, verify: counted(1, 0.2) } }, "verify: SQL statements"],
      [{ counted: { ...calls, malformed: counted(0.1, 0) } }, "malformed: RPC calls"],
      [{ counted: { ...calls, badlySigned: counted(0, 0.1) } }, "badly signed: SQL statements"],
      [{ counted: { ...calls, settle: counted(3, 20) } }, "settle: RPC calls"],
      [{ refusals: { ...refusals, malformed: oneCase(0.21) } }, "malformed: CPU of a valid verify's"],
      [{ refusals: { ...refusals, badlySigned: oneCase(0.51) } }, "badly signed: CPU of a valid verify's"],
      [{ variants: { ...variants, keys: oneCase(0.96) } }, "with keys: rate kept"],
      [{ variants: { ...variants, telemetry: oneCase(1.01) } }, "with OpenTelemetry at 0.1: rate kept"],
      [{ variants: { ...variants, metadata: oneCase(1.01) } }, "with metadata: rate kept"],
      [{ settle: { ...settle, ours: { ...settle.ours, cpu: oneCase(5.1, 20, 4).cpu } } }, "settle: CPU of the class's"],
      [
        { settle: { ...settle, ours: { ...settle.ours, cpu: oneCase(5, 20, 4.1).cpu } } },
        "settle: PostgreSQL's of the class's CPU"
      ],
      [{ settle: { ...settle, ours: { ...settle.ours, settling: settling(399, 20) } } }, "settle: settled of sent"],
      [
        { settle: { ...settle, ours: { ...settle.ours, settling: settling(400, 22) } } },
        "settle: of the channels' bound"
      ],
      [{ busy: { ...reached.busy!, rate: 84 } }, "100 channels: settled a second"],
      [{ busy: { ...reached.busy!, millis: { ...reached.busy!.millis, p50: 1_301 } } }, "100 channels: p50 ms"]
    ]
    for (const [change, name] of cases) expect(missed({ ...reached, ...change })).toEqual([name])
  })

  it("of variants use the median of the blocks that both had", () => {
    const { variants } = reached
    const blocks = (...cpuRounds: ReadonlyArray<number | null>): Case => ({ ...oneCase(1), cpuRounds })
    const verified = (bare: Case, telemetry: Case) =>
      missed({ ...reached, variants: { ...variants, bare, telemetry, keys: bare } })
    // A machine that slows down, and one block disturbed by another program's processor use.
    expect(verified(blocks(1, 2, 3), blocks(1.1, 2.2, 9))).toEqual([])
    expect(verified(blocks(1, 2, 3), blocks(1.2, 2.4, 3))).toEqual(["with OpenTelemetry at 0.1: rate kept"])
    expect(verified(blocks(1, 2, 3), blocks(1, 2, null))).toEqual(["with OpenTelemetry at 0.1: rate kept"])
  })

  it("are not reached by figures that the system does not report", () => {
    const blind = check({ ...reached, verify: { ours: oneCase(null, 250), class: oneCase(null, 100) } })
    expect(blind.filter(({ holds }) => !holds).map(barLine)).toEqual([
      "verify: CPU of the class's unknown (≤ 0.3, MISSED)"
    ])
  })
})
