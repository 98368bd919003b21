// Required results of a simulation and of an executed transaction, over the contract's real events and every deviation
// from them.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Option } from "effect"
import { describe, expect, it } from "vitest"
import type { SimulationAnswer } from "../../../kernel/ledger/LedgerRpc.ts"
import { type ContractEvent, readEvent } from "../../../kernel/stellar/TransferEvents.ts"
import { i128, sym } from "../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { movedAsPromised } from "../../../plugins/x402-upto/executedChecks.ts"
import { isSpent } from "../../../kernel/payment/readSimulation.ts"
import {
  checkEvents,
  ownAuthorizationStroops,
  type Settlement,
  checkSimulation
} from "../../../plugins/x402-upto/simulationChecks.ts"
import { drafts, tollkeeper } from "../../../plugins/x402-upto/profiles.ts"
import { settlementWasm } from "../../../plugins/x402-upto/contract.ts"
import { payee, payer, stranger, succeeded } from "../ledger-local/engine/World.ts"
import { UptoWorld } from "./contractWorld.ts"

const textOf = (address: any): string =>
  address.type === 1
    ? StrKey.encodeContract(address.contractId)
    : StrKey.encodeEd25519PublicKey(address.accountId.ed25519)

const world = new UptoWorld(settlementWasm())
const settlementOf = (amount: bigint): Settlement => ({
  contract: textOf(world.upto),
  profile: tollkeeper,
  closes: true,
  payer: textOf(payer.address),
  payTo: textOf(payee.address),
  asset: textOf(world.usdToken),
  max: 600n,
  amount
})
const eventsOf = (amount: bigint) =>
  succeeded(world.settle({ actual: amount })).events.map((event) =>
    xdr.ContractEvent.schema.decode(xdr.ContractEvent.fromXdrObject(event as never).toXdr())
  ) as Array<ContractEvent>

const [approved, transferred, closed, ended] = eventsOf(250n) as [
  ContractEvent,
  ContractEvent,
  ContractEvent,
  ContractEvent
]
const [endedAtZero] = eventsOf(0n) as [ContractEvent]
const settlement = settlementOf(250n)

type Loose = any
const withTopic = (event: ContractEvent, index: number, value: Loose): ContractEvent => {
  const { topics } = event.body.v0
  const changed = topics.map((topic, position) => (position === index ? value : topic))
  return { ...event, body: { v: 0, v0: { ...event.body.v0, topics: changed } } } as ContractEvent
}
const withData = (event: ContractEvent, data: Loose): ContractEvent =>
  ({ ...event, body: { v: 0, v0: { ...event.body.v0, data } } }) as ContractEvent
const by = (event: ContractEvent, contract: string): ContractEvent =>
  ({ ...event, contractId: StrKey.decodeContract(contract) }) as ContractEvent
const elsewhere = StrKey.encodeContract(new Uint8Array(32).fill(9))
const someone = { type: 18, address: stranger.address }
/** The event of a smart account that moves nothing. */
const remark = by(withTopic(closed, 0, sym("spent_today")), elsewhere)

const wordOf = (events: ReadonlyArray<ContractEvent>, of: Settlement = settlement) =>
  checkEvents(events, of)?.[0].replace("invalid_upto_ledger_", "")

const withField = (name: string, value: Loose): ContractEvent => {
  const data = ended.body.v0.data as Loose
  const map = data.map.map((entry: Loose) =>
    new TextDecoder().decode(entry.key.sym.bytes ?? entry.key.sym) === name ? { ...entry, val: value } : entry
  )
  return withData(ended, { ...data, map })
}

describe("the events of a settlement", () => {
  it("a settlement's events are allowance, transfer, allowance end and contract event", () => {
    expect(wordOf([approved, transferred, closed, ended])).toBeUndefined()
    expect(wordOf([endedAtZero], settlementOf(0n))).toBeUndefined()
  })

  it("a smart account's events are allowed among a settlement's, at any position", () => {
    expect(wordOf([remark, approved, remark, transferred, closed, ended, remark])).toBeUndefined()
    expect(wordOf([remark, endedAtZero], settlementOf(0n))).toBeUndefined()
  })

  it.each<readonly [string, ReadonlyArray<ContractEvent>, string, Settlement?]>([
    ["nothing", [], "event_wrong_sequence"],
    ["no transfer", [approved, closed, ended], "event_wrong_sequence"],
    ["two transfers", [approved, transferred, transferred, closed, ended], "event_wrong_sequence"],
    ["no end of the allowance", [approved, transferred, ended], "event_wrong_sequence"],
    ["no word of the contract", [approved, transferred, closed], "event_wrong_sequence"],
    ["the contract's word first", [ended, approved, transferred, closed], "event_wrong_sequence"],
    ["a movement for zero", [approved, transferred, closed, ended], "event_wrong_transfer", settlementOf(0n)],
    ["allowances for zero", [approved, closed, endedAtZero], "event_wrong_sequence", settlementOf(0n)],
    [
      "a smaller allowance",
      [withData(approved, { type: 16, vec: [i128(599n), { type: 3, u32: 1 }] }), transferred, closed, ended],
      "event_wrong_sequence"
    ],
    [
      "an allowance that stays",
      [approved, transferred, withData(closed, { type: 16, vec: [i128(1n), { type: 3, u32: 1 }] }), ended],
      "event_wrong_sequence"
    ],
    ["another's allowance", [withTopic(approved, 1, someone), transferred, closed, ended], "event_wrong_sequence"],
    [
      "an allowance for another spender",
      [approved, transferred, withTopic(closed, 2, someone), ended],
      "event_wrong_sequence"
    ],
    ["another payer", [approved, withTopic(transferred, 1, someone), closed, ended], "event_wrong_transfer"],
    ["another recipient", [approved, withTopic(transferred, 2, someone), closed, ended], "event_wrong_transfer"],
    ["another amount", [approved, withData(transferred, i128(251n)), closed, ended], "event_wrong_transfer"],
    ["a burn", [approved, { ...withTopic(transferred, 0, sym("burn")) }, closed, ended], "event_wrong_transfer"],
    ["another token", [approved, transferred, closed, by(transferred, elsewhere), ended], "event_wrong_asset"],
    [
      "a movement that cannot be read",
      [approved, withData(transferred, { type: 1 }), closed, ended],
      "event_unreadable"
    ],
    [
      "a stranger's word for the contract's",
      [approved, transferred, closed, by(ended, textOf(world.usdToken))],
      "event_wrong_settlement"
    ],
    [
      "the word of another payer",
      [approved, transferred, closed, withTopic(ended, 1, someone)],
      "event_wrong_settlement"
    ],
    [
      "the word of another recipient",
      [approved, transferred, closed, withTopic(ended, 2, someone)],
      "event_wrong_settlement"
    ],
    [
      "the word of another token",
      [approved, transferred, closed, withTopic(ended, 3, someone)],
      "event_wrong_settlement"
    ],
    ["another ceiling", [approved, transferred, closed, withField("max", i128(601n))], "event_wrong_settlement"],
    [
      "another actual amount",
      [approved, transferred, closed, withField("actual", i128(249n))],
      "event_wrong_settlement"
    ]
  ])("the events check refuses %s", (_name, events, word, of) => {
    expect(wordOf(events as ReadonlyArray<ContractEvent>, of as Settlement | undefined)).toBe(word)
  })
})

const diagnostic = (event: ContractEvent, inSuccessfulContractCall = true): Uint8Array =>
  xdr.DiagnosticEvent.schema.encode({ inSuccessfulContractCall, event } as never)

const simulated = (
  resourceFeeStroops: bigint,
  events = [approved, transferred, closed, ended].map((e) => diagnostic(e))
) =>
  ({
    _tag: "Simulated",
    latestLedger: 1,
    resourceFeeStroops,
    sorobanDataXdr: new Uint8Array(),
    eventsXdr: events,
    authXdr: []
  }) as SimulationAnswer

const ceilings = { resourceStroopsMax: 100_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 100_100n }
const errorOf = (answer: SimulationAnswer, added = 0n) =>
  checkSimulation(answer, settlement, ceilings, added)?.[0].replace("invalid_upto_ledger_", "")

describe("a simulation", () => {
  it("a simulation counts only events of successful contract calls", () => {
    const noise = { ...transferred, type: 2 } as ContractEvent
    const events = [approved, transferred, closed, ended]
    const all = [...events.map((event) => diagnostic(event)), diagnostic(transferred, false), diagnostic(noise)]
    expect(errorOf(simulated(1n, all))).toBeUndefined()
    expect(errorOf(simulated(1n, [...all, diagnostic(transferred)]))).toBe("event_wrong_sequence")
    expect(errorOf(simulated(1n, [Uint8Array.of(1, 2, 3)]))).toBe("event_unreadable")
  })

  it("a simulation stays within each ceiling and reserves for the authorization", () => {
    expect(errorOf(simulated(99_900n))).toBeUndefined()
    expect(errorOf(simulated(99_901n))).toBe("payload_fee_exceeds_maximum")
    expect(errorOf(simulated(100_001n))).toBe("payload_fee_exceeds_maximum")
    expect(errorOf(simulated(99_900n - ownAuthorizationStroops), ownAuthorizationStroops)).toBeUndefined()
    expect(errorOf(simulated(99_901n - ownAuthorizationStroops), ownAuthorizationStroops)).toBe(
      "payload_fee_exceeds_maximum"
    )
    // A restoration within the ceilings is paid for; beyond them the reason names the restoration.
    const restoring = (fee: bigint) => ({ ...simulated(fee), restoredEntries: 1 }) as SimulationAnswer
    expect(errorOf(restoring(99_900n))).toBeUndefined()
    expect(errorOf(restoring(99_901n))).toBe("restore_required")
    const roomy = { ...ceilings, totalStroopsMax: 900_000n }
    expect(checkSimulation(simulated(100_001n), settlement, roomy, 0n)?.[1]).toMatch(/ceiling 100000/)
  })

  it("a failed simulation says why, and whether the authorization was used", () => {
    const refused = (code: string): SimulationAnswer => ({ _tag: "Refused", latestLedger: 1, code, detail: "" })
    for (const [code, meaning] of [
      ["Error(Contract, #10)", /balance/],
      ["Error(Contract, #109)", /id is spent/],
      ["Error(Contract, #110)", /token does not move/]
    ] as const) {
      expect(checkSimulation(refused(code), settlement, ceilings, 0n)).toEqual([
        "invalid_upto_ledger_simulation_failed",
        expect.stringMatching(meaning)
      ])
      expect(isSpent(refused(code))).toBe(false)
    }
    expect(isSpent(refused("Error(Auth, ExistingValue)"))).toBe(true)
    expect(errorOf({ _tag: "RestoreRequired", latestLedger: 1 } as SimulationAnswer)).toBe("restore_required")
  })
})

describe("an executed transaction", () => {
  const executed = (events: ReadonlyArray<ContractEvent> | undefined) =>
    ({
      transfers: Option.some(
        (events ?? []).map(readEvent).flatMap((read) => (read._tag === "Moved" ? [read.transfer] : []))
      ),
      ...(events === undefined ? {} : { contractEvents: events })
    }) as Loose
  const { contract, ...promise } = settlement
  const holds = (events: ReadonlyArray<ContractEvent> | undefined, amount = 250n) =>
    movedAsPromised(executed(events), [{ contract, profile: tollkeeper }], { ...promise, amount })

  it("an executed transaction with the same events moved the promised amount", () => {
    expect(holds([approved, transferred, closed, ended])).toBe(true)
    expect(holds([endedAtZero], 0n)).toBe(true)
    expect(holds(undefined)).toBe(true)
  })

  it("events that the payer's account adds do not hide a settlement", () => {
    const steps = [approved, transferred, closed, ended]
    const ownToken = by(transferred, elsewhere)
    const toItself = withTopic(withData(transferred, i128(1n)), 2, transferred.body.v0.topics[1])
    const smaller = withData(approved, { type: 16, vec: [i128(1n), { type: 3, u32: 1 }] })
    for (const added of [remark, ownToken, toItself, smaller, approved, closed, by(ended, elsewhere)])
      for (let at = 0; at <= steps.length; at += 1) expect(holds(steps.toSpliced(at, 0, added))).toBe(true)
    expect(holds([ownToken, endedAtZero], 0n)).toBe(true)
    // None of them replaces a step.
    for (const [at] of steps.entries()) expect(holds([ownToken, toItself, ...steps.toSpliced(at, 1)])).toBe(false)
  })

  it("an account's own allowance event is not the settlement's ceiling", () => {
    const stateless = drafts.find(({ name }) => name === "stateless-salt")!
    const paid = (events: ReadonlyArray<ContractEvent>, amount: bigint) =>
      movedAsPromised(executed(events), [{ contract, profile: stateless }], { ...promise, amount })
    const claimed = by(withData(approved, { type: 16, vec: [i128(999n), { type: 3, u32: 1 }] }), elsewhere)
    expect(paid([claimed, approved, transferred, closed], 250n)).toBe(true)
    expect(paid([approved, transferred], 250n)).toBe(true)
    expect(paid([claimed, transferred], 250n)).toBe(false)
    expect(paid([approved, transferred, closed], 0n)).toBe(false)
    expect(paid([approved, closed], 0n)).toBe(true)
  })

  it("an executed transaction with other or missing events did not settle", () => {
    expect(holds([approved, transferred, closed, ended], 251n)).toBe(false)
    expect(holds([approved, transferred, closed, ended], 0n)).toBe(false)
    expect(holds([endedAtZero])).toBe(false)
    expect(holds([transferred])).toBe(false)
    expect(holds([])).toBe(false)
  })
})
