// Required results of the enforcing simulation, with artificial responses: each deviation has its reason, and
// additional events of a smart account are allowed.
import { Address, Keypair, nativeToScVal, StrKey, xdr } from "@stellar/stellar-sdk"
import { expect, it } from "vitest"
import { isSpent } from "../../../kernel/payment/readSimulation.ts"
import { movedAsPromised, checkSimulation } from "../../../plugins/x402-exact/simulationChecks.ts"

const asset = StrKey.encodeContract(new Uint8Array(32).fill(1))
const otherAsset = StrKey.encodeContract(new Uint8Array(32).fill(2))
const [payer, payTo, stranger] = [1, 2, 3].map(() => Keypair.random().publicKey()) as [string, string, string]
const promise = { payer, payTo, asset, amount: 10_000n }
const ceilings = { resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n }
const exact = "invalid_exact_ledger_payload"

const address = (value: string) => new Address(value).toScVal()
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })

const event = (
  contract: string,
  topics: ReadonlyArray<xdr.ScVal>,
  data: xdr.ScVal,
  {
    successful = true,
    type = xdr.ContractEventType.contract
  }: { successful?: boolean; type?: xdr.ContractEventType } = {}
): Uint8Array =>
  new xdr.DiagnosticEvent({
    inSuccessfulContractCall: successful,
    event: new xdr.ContractEvent({
      ext: xdr.ExtensionPoint.v0(),
      contractId: new xdr.ContractId(StrKey.decodeContract(contract)),
      type,
      body: xdr.ContractEventBody.v0(new xdr.ContractEventV0({ topics: [...topics], data }))
    })
  }).toXdr() as unknown as Uint8Array

const transfer = (change: Partial<{ contract: string; from: string; to: string; amount: bigint }> = {}) =>
  event(
    change.contract ?? asset,
    [
      xdr.ScVal.scvSymbol("transfer"),
      address(change.from ?? payer),
      address(change.to ?? payTo),
      xdr.ScVal.scvString("USDC:X")
    ],
    i128(change.amount ?? 10_000n)
  )

const simulated = (eventsXdr: ReadonlyArray<Uint8Array>, resourceFeeStroops = 40_000n) =>
  ({
    _tag: "Simulated",
    latestLedger: 1,
    resourceFeeStroops,
    sorobanDataXdr: new Uint8Array(),
    eventsXdr,
    authXdr: []
  }) as const

const reasonOf = (answer: Parameters<typeof checkSimulation>[0]) => checkSimulation(answer, promise, ceilings)?.[0]

it("a simulation with exactly the promised transfer is accepted", () =>
  expect(reasonOf(simulated([transfer()]))).toBeUndefined())

it("events of a smart account beside the transfer are tolerated", () => {
  const note = event(otherAsset, [xdr.ScVal.scvSymbol("policy_checked")], xdr.ScVal.scvU32(1))
  expect(reasonOf(simulated([note, transfer(), note]))).toBeUndefined()
})

it("movements are read from events, not diagnostics or failed calls", () => {
  const topics = [xdr.ScVal.scvSymbol("transfer"), address(payer), address(payTo)]
  // Garbage that claims to move tokens would be refused if it were a contract's event of a successful call.
  const diagnostic = event(asset, topics.slice(0, 1), xdr.ScVal.scvVoid(), { type: xdr.ContractEventType.diagnostic })
  const failed = event(asset, topics, i128(10_000n), { successful: false })
  expect(reasonOf(simulated([diagnostic, failed, transfer(), failed]))).toBeUndefined()
  expect(reasonOf(simulated([failed]))).toBe(`${exact}_no_transfer_events`)
})

it("a payment to the issuer, which burns, is accepted", () => {
  const burn = event(asset, [xdr.ScVal.scvSymbol("burn"), address(payer), xdr.ScVal.scvString("USDC:X")], i128(10_000n))
  expect(reasonOf(simulated([burn]))).toBeUndefined()
})

it.each([
  ["nothing moves", [], `${exact}_no_transfer_events`],
  ["another token moves", [transfer({ contract: otherAsset })], `${exact}_event_wrong_asset`],
  ["another token moves too", [transfer(), transfer({ contract: otherAsset })], `${exact}_event_wrong_asset`],
  ["the asset moves twice", [transfer(), transfer()], `${exact}_multiple_transfers`],
  [
    "the asset moves on to a stranger",
    [transfer(), transfer({ from: payTo, to: stranger, amount: 1n })],
    `${exact}_multiple_transfers`
  ],
  ["another account pays", [transfer({ from: stranger })], `${exact}_event_wrong_from`],
  ["another account is paid", [transfer({ to: stranger })], `${exact}_event_wrong_to`],
  ["less is moved", [transfer({ amount: 9_999n })], `${exact}_event_wrong_amount`],
  [
    "the payer's tokens are clawed back",
    [event(asset, [xdr.ScVal.scvSymbol("clawback"), address(payer), xdr.ScVal.scvString("USDC:X")], i128(10_000n))],
    `${exact}_event_wrong_to`
  ],
  [
    "the issuer pays",
    [event(asset, [xdr.ScVal.scvSymbol("mint"), address(payTo), xdr.ScVal.scvString("USDC:X")], i128(10_000n))],
    `${exact}_issuer_is_payer`
  ],
  ["an event is no event", [new Uint8Array([1, 2, 3])], `${exact}_event_not_transfer`],
  [
    "a transfer cannot be read",
    [event(asset, [xdr.ScVal.scvSymbol("transfer"), xdr.ScVal.scvU32(1)], xdr.ScVal.scvVoid())],
    `${exact}_event_not_transfer`
  ]
] as const)("the simulation is refused when %s [S76]", (_, events, reason) =>
  expect(reasonOf(simulated(events))).toBe(reason)
)

it("a fee above the ceiling is refused with both figures", () => {
  expect(reasonOf(simulated([transfer()], 200_000n))).toBeUndefined()
  const error = checkSimulation(simulated([transfer()], 200_001n), promise, ceilings)
  expect(error).toEqual([`${exact}_fee_exceeds_maximum`, "the resource fee is 200001 stroops, the ceiling 200000"])
  const total = checkSimulation(simulated([transfer()], 150_000n), promise, { ...ceilings, totalStroopsMax: 150_100n })
  expect(total?.[0]).toBe(`${exact}_fee_exceeds_maximum`)
})

it("a ledger refusal carries its code and its meaning [S266]", () => {
  const answer = { _tag: "Refused", latestLedger: 1, code: "HostError: Error(Contract, #10)", detail: "" } as const
  expect(checkSimulation(answer, promise, ceilings)).toEqual([
    "invalid_ledger_enforcing_simulation_failed",
    "HostError: Error(Contract, #10): the payer's balance does not cover the amount, " +
      "or the recipient's limit does not take it"
  ])
  expect(isSpent(answer)).toBe(false)
  expect(isSpent({ ...answer, code: "HostError: Error(Auth, ExistingValue)" })).toBe(true)
})

it("archived entries must be restored first", () => {
  const answer = { _tag: "RestoreRequired", latestLedger: 1, restoreStroops: 7n } as const
  expect(checkSimulation(answer, promise, ceilings)).toEqual([
    "invalid_ledger_restore_required",
    expect.stringMatching(/in a separate transaction, for 7 stroops$/)
  ])
})

it("archived entries are restored within the ceilings, else costs are reported", () => {
  const restoring = { ...simulated([transfer()]), restoredEntries: 1 }
  expect(reasonOf(restoring)).toBeUndefined()
  const beyond = { ...restoring, resourceFeeStroops: ceilings.resourceStroopsMax + 1n }
  expect(reasonOf(beyond)).toBe("invalid_ledger_restore_required")
  expect(reasonOf({ ...beyond, restoredEntries: 0 })).toBe("invalid_exact_ledger_payload_fee_exceeds_maximum")
})

it("the promised transfer is found among executed ones, nothing else counts", () => {
  expect(movedAsPromised([{ contract: asset, from: payer, to: payTo, amount: 10_000n }], promise)).toBe(true)
  expect(movedAsPromised([{ contract: asset, from: payer, to: payTo, amount: 9_999n }], promise)).toBe(false)
  expect(movedAsPromised([{ contract: asset, from: payer, to: stranger, amount: 10_000n }], promise)).toBe(false)
  expect(movedAsPromised([], promise)).toBe(false)
})
