// When a settlement can be paid for: each condition, tested to the last stroop.
import { describe, expect, it } from "@effect/vitest"
import {
  isOpening,
  sponsorProblem,
  spendable,
  type SponsorStatus
} from "../../../../kernel/settlement/sponsor/sponsorProblem.ts"

const ceilings = { resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 205_000n }
const enough: SponsorStatus = {
  account: { balanceStroops: 10_000_000n + 400_000n + 205_000n, reserveStroops: 10_000_000n },
  owedStroops: 400_000n,
  channelsReady: 2,
  channelsUsable: 1,
  channelStroopsLeast: 50_000_000n,
  open: 9,
  oldestOpenSeconds: 3
}
const sponsor = "GSPONSOR"
const errorOf = (change: Partial<SponsorStatus>, asked = 10_000n) =>
  sponsorProblem({ ...enough, ...change }, asked, ceilings, sponsor, 10)

describe("a settlement", () => {
  it("a sponsor can pay with its reserve, open settlements and maximum cost covered", () => {
    expect(spendable(enough)).toBe(205_000n)
    expect(errorOf({})).toBeUndefined()
  })

  it("a sponsor cannot pay with one stroop less", () => {
    const short = "the sponsor's balance does not cover another transaction; send XLM to GSPONSOR"
    const { balanceStroops, reserveStroops } = enough.account!
    expect(errorOf({ account: { balanceStroops: balanceStroops - 1n, reserveStroops } })).toBe(short)
    expect(errorOf({ owedStroops: enough.owedStroops + 1n })).toBe(short)
    expect(errorOf({ account: { balanceStroops, reserveStroops: reserveStroops + 5_000_000n } })).toBe(short)
  })

  it("a settlement requires the sponsor's account and a channel on the ledger", () => {
    expect(errorOf({ account: undefined })).toBe("the sponsor's account is not on the ledger; send XLM to GSPONSOR")
    expect(errorOf({ channelsUsable: 0 })).toBe("no channel can be used")
  })

  it("no settlement begins while too many are open", () => {
    expect(errorOf({ open: 10 })).toBe("too many settlements are open")
  })

  it("a settlement is not affordable while the network's fee exceeds a ceiling", () => {
    const dear = "the network asks more for inclusion than may be bid"
    expect(errorOf({}, 10_001n)).toBe(dear)
    expect(sponsorProblem(enough, 9_000n, { ...ceilings, totalStroopsMax: 8_999n }, sponsor, 10)).toBe(dear)
    expect(sponsorProblem(enough, 9_000n, { ...ceilings, totalStroopsMax: 9_000n }, sponsor, 10)).toBeUndefined()
  })

  it("waits while channels open or a faucet funds the sponsor", () => {
    const isWaitedFor = (change: Partial<SponsorStatus>, isFundedByFaucet = false) =>
      isOpening({ ...enough, ...change }, ceilings, isFundedByFaucet)
    expect(isWaitedFor({ channelsUsable: 0 })).toBe(true)
    expect(isWaitedFor({ channelsUsable: 0, owedStroops: enough.owedStroops + 1n }, true)).toBe(false)
    expect(isWaitedFor({ channelsUsable: 1 }, true)).toBe(false)
    expect(isWaitedFor({ account: undefined }, true)).toBe(true)
    expect(isWaitedFor({ account: undefined })).toBe(false)
  })
})
