import { describe, expect, it } from "vitest"
import {
  type ChannelRecords,
  type ChannelView,
  compareChannels,
  holdingOf,
  lifeLedgersMin
} from "../../../../plugins/x402-batch/audit/compareChannels.ts"

const token = "CTOKEN"
const contract = "CBATCH"
const channel = { contract, channelId: "ab", config: { token, receiver: "GSELLER" } as never }
const deposit = (ledger: number, moved: bigint) => ({
  settlement: "1",
  transaction: "aa",
  ledger,
  contract,
  functionName: "deposit",
  moved,
  channel,
  swept: undefined,
  claims: []
})
const seen = (ledger: number, amount: bigint, balance: bigint, transaction = "aa") => ({
  contract,
  transaction,
  ledger,
  event: { _tag: "Deposited" as const, channelId: "ab", config: channel.config, from: "GBUYER", amount, balance }
})
const state = (balance: bigint, totalClaimed = 0n) => ({
  ...channel,
  state: { balance, totalClaimed, withdrawRequestedAt: 0, refundNonce: 0n },
  modifiedLedger: 10
})
const held = (amount: bigint, modifiedLedger = 10) =>
  new Map([[holdingOf(contract, token), { amount, modifiedLedger }]])

const audited = (changes: { readonly records?: Partial<ChannelRecords>; readonly view?: Partial<ChannelView> }) => {
  const records = { calls: [deposit(10, 100n)], storedBefore: [], storedAfter: [], ...changes.records }
  const view = {
    fromLedger: 1,
    toLedger: 20,
    events: [seen(10, 100n, 100n)],
    channels: [state(100n)],
    receivers: [],
    holdings: held(100n),
    ...changes.view
  }
  const { mismatches, ...rest } = compareChannels(records, view)
  return { ...rest, rules: mismatches.map(({ rule }) => rule) }
}

describe("the comparison of channels", () => {
  it("finds nothing where records, events and state agree", () => {
    expect(audited({})).toEqual({
      channels: 1,
      older: 0,
      ofOthers: 0,
      changed: 0,
      archived: 0,
      tokens: [{ contract, token, held: "100", unsettled: "0", has: "100" }],
      rules: []
    })
  })

  it("reports a contract that has less than it owes to channels and receivers", () => {
    const receivers = [
      { contract, receiver: "GSELLER", token, state: { totalClaimed: 30n, totalSettled: 10n }, modifiedLedger: 10 }
    ]
    expect(audited({ view: { channels: [state(100n, 30n)], receivers, holdings: held(90n) } }).rules).toEqual([])
    expect(audited({ view: { channels: [state(100n, 30n)], receivers, holdings: held(89n) } }).rules).toEqual([
      "channels covered"
    ])
    // Read at a different moment than its channels, it proves nothing.
    expect(audited({ view: { holdings: held(99n, 21) } }).rules).toEqual([])
    expect(audited({ view: { holdings: new Map() } }).tokens).toMatchObject([{ has: null }])
  })

  it("reports a used channel that is not on the ledger until its entry may be archived", () => {
    const gone = { ...channel, state: undefined, modifiedLedger: 0 }
    const view = { channels: [gone], events: [], holdings: new Map() }
    expect(audited({ view: { ...view, fromLedger: 15 } }).rules).toEqual(["channel on ledger"])
    const late = { fromLedger: 10 + lifeLedgersMin, toLedger: 10 + lifeLedgersMin }
    expect(audited({ view: { ...view, ...late } })).toMatchObject({ rules: [], archived: 1 })
    // The endpoint is behind that ledger.
    expect(audited({ records: { calls: [deposit(21, 100n)] }, view }).rules).toEqual([])
  })

  it("sums no channel that is older than the history, and compares none that changed meanwhile", () => {
    const older = { fromLedger: 11, events: [], channels: [state(900n)], holdings: held(900n) }
    expect(audited({ view: older })).toMatchObject({ rules: [], older: 1 })
    const changed = { channels: [{ ...state(900n), modifiedLedger: 21 }] }
    expect(audited({ view: changed })).toMatchObject({ rules: [], changed: 1 })
  })

  it("counts another's deposit by its event, and a recorded one by its record", () => {
    const events = [seen(10, 100n, 100n), seen(12, 50n, 150n, "bb")]
    const view = { events, channels: [state(150n)], holdings: held(150n) }
    expect(audited({ view })).toMatchObject({ rules: [], ofOthers: 1 })
    expect(audited({ view: { ...view, channels: [state(149n)] } }).rules).toEqual(["channel balance"])
    expect(audited({ records: { calls: [deposit(10, 101n)] } }).rules).toEqual(["channel event", "channel balance"])
  })

  it("compares claims of calls that the endpoint has seen, and the store's with the reading before and after", () => {
    const claim = {
      ...deposit(10, 0n),
      functionName: "claim",
      channel: undefined,
      claims: [{ ...channel, totalClaimed: 8n }]
    }
    const calls = [deposit(10, 100n), claim]
    const channels = [state(100n, 7n)]
    expect(audited({ records: { calls }, view: { channels } }).rules).toEqual(["channel claim"])
    const later = [deposit(10, 100n), { ...claim, ledger: 21 }]
    expect(audited({ records: { calls: later }, view: { channels } }).rules).toEqual([])
    const stored = { ...channel, principal: "key:a", delegated: true, charged: 6n, totalClaimed: 8n, refund: undefined }
    expect(audited({ records: { storedBefore: [stored] }, view: { channels } }).rules).toEqual(["channel store"])
    expect(audited({ records: { storedAfter: [stored] }, view: { channels } }).rules).toEqual(["channel charges"])
    const more = { ...stored, totalClaimed: 7n, charged: 101n }
    expect(audited({ records: { storedBefore: [more] }, view: { channels } }).rules).toEqual(["channel claimable"])
    const pending = (nonce: bigint) => ({ ...more, charged: 60n, refund: { amount: 41n, nonce } })
    expect(audited({ records: { storedBefore: [pending(0n)] }, view: { channels } }).rules).toEqual([
      "channel claimable"
    ])
    const moved = [{ ...channels[0]!, state: { ...channels[0]!.state!, refundNonce: 1n } }]
    expect(audited({ records: { storedBefore: [pending(0n)] }, view: { channels: moved } }).rules).toEqual([])
    const own = { ...stored, delegated: false }
    expect(audited({ records: { storedAfter: [own] }, view: { channels } }).rules).toEqual([])
  })
})
