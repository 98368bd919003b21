import { describe, expect, it } from "vitest"
import {
  accountKey,
  contractDataKey,
  contractInstanceKey
} from "../../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  address as addressVal,
  bool,
  i128,
  readI128,
  structMap,
  sym,
  symbolText,
  u32,
  vec
} from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import {
  accountOfStrKey,
  addressStrKey,
  codec,
  contractAddress,
  fromLatin1,
  type ScAddress,
  type ScVal,
  textOf,
  xdrText
} from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  errorOf,
  INT64_MAX,
  issuer,
  ledgerSeq,
  lineBalance,
  native,
  paidWorld,
  payee,
  payer,
  someContract,
  sponsor,
  stranger,
  succeeded,
  transferArgs,
  usd,
  World
} from "../World.ts"

const muxed = (id: bigint): ScAddress => ({ type: 2, muxedAccount: { id, ed25519: payee.id.ed25519 } })

const eventNames = (result: ReturnType<typeof succeeded>): ReadonlyArray<string | undefined> =>
  result.events.map((event) => symbolText(event.body.v0.topics[0]))

const eventData = (result: ReturnType<typeof succeeded>): ScVal | undefined => result.events[0]?.body.v0.data

describe("the asset contract's transfer", () => {
  it("transfer moves the amount between trustlines and emits one named event", () => {
    const result = succeeded(paidWorld().call("transfer", transferArgs(payer, payee, 250n), { by: payer }))
    expect(lineBalance(result.changes, payer)).toBe(750n)
    expect(lineBalance(result.changes, payee)).toBe(250n)
    expect(eventNames(result)).toEqual(["transfer"])
    const name = result.events[0]!.body.v0.topics[3]!
    expect(name.type === 14 && textOf(name.str)).toMatch(/^USD:G/)
    expect(readI128(eventData(result)!)).toBe(250n)
    expect(result.returnValue).toEqual({ type: 1 })
  })

  it("leaves the given store as it was", () => {
    const world = paidWorld()
    succeeded(world.call("transfer", transferArgs(payer, payee, 250n), { by: payer }))
    expect(lineBalance(world.store, payer)).toBe(1_000n)
  })

  it("carries a multiplexed destination's id in the event", () => {
    const result = succeeded(paidWorld().call("transfer", transferArgs(payer, muxed(42n), 1n), { by: payer }))
    expect(eventData(result)).toEqual(structMap({ amount: i128(1n), to_muxed_id: { type: 5, u64: 42n } }))
    expect(lineBalance(result.changes, payee)).toBe(1n)
  })

  it("a transfer from the issuer is a mint, to it a burn", () => {
    const world = paidWorld()
    expect(eventNames(succeeded(world.call("transfer", transferArgs(issuer, payee, 5n), { by: issuer })))).toEqual([
      "mint"
    ])
    expect(eventNames(succeeded(world.call("transfer", transferArgs(payer, issuer, 5n), { by: payer })))).toEqual([
      "burn"
    ])
    expect(eventNames(succeeded(world.call("transfer", transferArgs(issuer, issuer, 5n), { by: issuer })))).toEqual([
      "transfer"
    ])
  })

  it("transfer reads instance and payer, and writes nonce and trustlines only", () => {
    const result = succeeded(paidWorld().call("transfer", transferArgs(payer, payee, 250n), { by: payer }))
    expect(result.footprint.readOnly.map((key) => key.type)).toEqual([0, 6])
    expect(result.footprint.readWrite.map((key) => key.type)).toEqual([1, 1, 6])
  })

  it("runs the same when the recorded footprint is enforced", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 250n)
    const { footprint, changes } = succeeded(world.call("transfer", args, { by: payer }))
    const enforced = succeeded(world.call("transfer", args, { by: payer, access: { mode: "enforce", footprint } }))
    expect([...enforced.changes.changes()]).toEqual([...changes.changes()])
  })

  it("refuses a key outside of the footprint", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 250n)
    const { footprint } = succeeded(world.call("transfer", args, { by: payer }))
    const smaller = { readOnly: footprint.readOnly, readWrite: footprint.readWrite.slice(1) }
    expect(
      errorOf(world.call("transfer", args, { by: payer, access: { mode: "enforce", footprint: smaller } }))
    ).toMatch(/^Error\(Storage, ExceededLimit\)/)
  })

  it("extends the read-only instance to seven days below six", () => {
    const world = paidWorld()
    world.sac(usd, ledgerSeq + 103_680)
    const result = succeeded(world.call("transfer", transferArgs(payer, payee, 1n), { by: payer }))
    const ttls = [...result.changes.changes()].flatMap(({ after }) =>
      after?.data.type === 9 ? [after.data.ttl.liveUntilLedgerSeq] : []
    )
    expect(ttls).toContain(ledgerSeq + 120_960)
  })
})

describe("the asset contract's errors", () => {
  it("#2 refuses to burn the native asset", () => {
    expect(errorOf(paidWorld().call("burn", [addressVal(payer.address), i128(1n)], { by: payer }, native))).toMatch(
      /#2\) operation invalid on native/
    )
  })

  it("#2 refuses to mint to the issuer", () => {
    expect(errorOf(paidWorld().call("mint", [addressVal(issuer.address), i128(1n)], { by: issuer }))).toMatch(
      /#2\) operation invalid on issuer/
    )
  })

  it("#2 refuses to deauthorize without AUTH_REVOCABLE", () => {
    const args = [addressVal(payer.address), bool(false)]
    expect(errorOf(paidWorld().call("set_authorized", args, { by: issuer }))).toMatch(
      /#2\) issuer does not have AUTH_REVOCABLE/
    )
  })

  it("#3 refuses to initialize a contract again", () => {
    const world = paidWorld()
    // `init_asset` is not a reserved name, so anyone may call it.
    expect(errorOf(world.call("init_asset", [{ type: 13, bytes: new Uint8Array(4) }]))).toMatch(/#3\) /)
  })

  it("#6 refuses to spend from an account that is not there", () => {
    expect(
      errorOf(paidWorld().call("transfer", transferArgs(stranger, payee, 1n), { source: stranger }, native))
    ).toMatch(/#6\) account entry is missing/)
  })

  it("#8 refuses a negative amount before anything else", () => {
    expect(errorOf(paidWorld().call("transfer", transferArgs(payer, payee, -1n), { auth: [] }))).toMatch(
      /#8\) negative amount/
    )
  })

  it("#9 refuses to spend more than the allowance", () => {
    const args = [addressVal(sponsor.address), ...transferArgs(payer, payee, 1n)]
    expect(errorOf(paidWorld().call("transfer_from", args))).toMatch(/#9\) not enough allowance/)
  })

  it("#9 refuses an allowance that ends before now or beyond maximum life", () => {
    const approve = (liveUntil: number) => [
      addressVal(payer.address),
      addressVal(sponsor.address),
      i128(1n),
      u32(liveUntil)
    ]
    expect(errorOf(paidWorld().call("approve", approve(ledgerSeq - 1), { by: payer }))).toMatch(
      /#9\) live_until must be/
    )
    expect(errorOf(paidWorld().call("approve", approve(ledgerSeq + 3_110_400), { by: payer }))).toMatch(
      /#9\) live_until is greater/
    )
  })

  it("#10 refuses to go below zero, and says the range", () => {
    const result = paidWorld().call("transfer", transferArgs(payer, payee, 1_001n), { by: payer })
    expect(errorOf(result)).toMatch(/#10\) resulting balance is not within the allowed range/)
    expect(!result.ok && result.error.args).toEqual([
      { type: 6, i64: 0n },
      { type: 6, i64: -1n },
      { type: 6, i64: INT64_MAX }
    ])
  })

  it("#10 refuses to exceed the payee's limit", () => {
    const world = paidWorld()
    world.line(payee, 0n, { limit: 10n })
    expect(errorOf(world.call("transfer", transferArgs(payer, payee, 11n), { by: payer }))).toMatch(/#10\)/)
  })

  it("#10 refuses a contract that has nothing or too little", () => {
    const world = paidWorld()
    world.account(issuer, 100_0000000n, { flags: 8 })
    const args = [addressVal(someContract), i128(1n)]
    expect(errorOf(world.call("clawback", args, { by: issuer }))).toMatch(/#10\) no balance to clawback/)
    world.contractBalance(someContract, 0n, true, true)
    expect(errorOf(world.call("clawback", args, { by: issuer }))).toMatch(/#10\) balance is not sufficient to spend/)
  })

  it("#10 keeps the reserve of a native balance", () => {
    const world = paidWorld()
    world.account(payer, 3_0000000n)
    expect(errorOf(world.call("transfer", transferArgs(payer, payee, 2_5000000n), { by: payer }, native))).toMatch(
      /#10\)/
    )
  })

  it("#11 refuses a deauthorized payer and a deauthorized payee", () => {
    const world = paidWorld()
    world.line(payer, 1_000n, { flags: 2 })
    expect(errorOf(world.call("transfer", transferArgs(payer, payee, 1n), { by: payer }))).toMatch(
      /#11\) balance is deauthorized/
    )
    world.line(payer)
    world.line(payee, 0n, { flags: 0 })
    expect(errorOf(world.call("transfer", transferArgs(payer, payee, 1n), { by: payer }))).toMatch(/#11\)/)
  })

  it("#12 refuses an amount beyond an i64 for an account", () => {
    expect(
      errorOf(paidWorld().call("mint", [addressVal(payee.address), i128(INT64_MAX + 1n)], { by: issuer }))
    ).toMatch(/#12\) received amount/)
    expect(errorOf(paidWorld().call("transfer", transferArgs(payer, payee, INT64_MAX + 1n), { by: payer }))).toMatch(
      /#12\) spent amount/
    )
  })

  it("#13 refuses an account without a trustline", () => {
    expect(errorOf(paidWorld().call("transfer", transferArgs(payer, sponsor, 1n), { by: payer }))).toMatch(
      /#13\) trustline entry is missing/
    )
  })

  it("#14 refuses to open an account or trustline without its reserve", () => {
    const world = paidWorld()
    expect(errorOf(world.call("transfer", transferArgs(payer, stranger, 9_999_999n), { by: payer }, native))).toMatch(
      /#14\) transfer amount is below/
    )
    world.account(stranger, 1_0000000n)
    expect(errorOf(world.call("trust", [addressVal(stranger.address)], { by: stranger }))).toMatch(
      /#14\) account has insufficient reserve/
    )
  })

  it("#15 refuses a trustline beyond a thousand subentries", () => {
    const world = paidWorld()
    world.account(stranger, INT64_MAX, { numSubEntries: 1_000 })
    expect(errorOf(world.call("trust", [addressVal(stranger.address)], { by: stranger }))).toMatch(/#15\)/)
  })

  it("a contract that is not deployed is a missing instance", () => {
    const world = new World()
    world.account(sponsor)
    expect(errorOf(world.call("decimals", []))).toBe(
      "Error(Storage, MissingValue) trying to get non-existing value for contract instance"
    )
  })

  it("the native asset has no administrator", () => {
    expect(errorOf(paidWorld().call("admin", [], {}, native))).toMatch(/^Error\(Storage, MissingValue\)/)
    expect(errorOf(paidWorld().call("mint", [addressVal(payee.address), i128(1n)], {}, native))).toMatch(
      /^Error\(Storage, MissingValue\)/
    )
  })

  it("refuses unknown functions, wrong argument counts and wrong types", () => {
    expect(errorOf(paidWorld().call("steal", []))).toMatch(/unknown export/)
    expect(errorOf(paidWorld().call("constructor", []))).toMatch(/unknown export/)
    expect(errorOf(paidWorld().call("transfer", []))).toMatch(/wrong number of args/)
    expect(errorOf(paidWorld().call("balance", [u32(1)]))).toMatch(/^Error\(Value, UnexpectedType\)/)
  })
})

describe("the asset contract's other functions", () => {
  it("mints and claws back as the administrator, and burns as the owner", () => {
    const world = paidWorld()
    world.line(payer, 1_000n, { flags: 5 })
    const minted = succeeded(world.call("mint", [addressVal(payer.address), i128(5n)], { by: issuer }))
    expect(lineBalance(minted.changes, payer)).toBe(1_005n)
    const clawed = succeeded(world.call("clawback", [addressVal(payer.address), i128(5n)], { by: issuer }))
    expect(lineBalance(clawed.changes, payer)).toBe(995n)
    const burned = succeeded(world.call("burn", [addressVal(payer.address), i128(5n)], { by: payer }))
    expect(lineBalance(burned.changes, payer)).toBe(995n)
    expect([minted, clawed, burned].flatMap(eventNames)).toEqual(["mint", "clawback", "burn"])
  })

  it("spends an allowance down, and leaves the rest under the same expiry", () => {
    const world = paidWorld()
    const approve = [addressVal(payer.address), addressVal(sponsor.address), i128(10n), u32(ledgerSeq + 50)]
    succeeded(world.call("approve", approve, { by: payer })).changes.commit()
    const spend = [addressVal(sponsor.address), ...transferArgs(payer, payee, 4n)]
    succeeded(world.call("transfer_from", spend)).changes.commit()
    const left = succeeded(world.call("allowance", [addressVal(payer.address), addressVal(sponsor.address)]))
    expect(left.returnValue).toEqual(i128(6n))
    const key = vec([
      sym("Allowance"),
      structMap({ from: addressVal(payer.address), spender: addressVal(sponsor.address) })
    ])
    const entry = world.store.getEntry(contractDataKey(contractAddress(world.contractId()), key, 0))
    expect(entry?.data.type === 6 && entry.data.contractData.val).toEqual(
      structMap({ amount: i128(6n), live_until_ledger: u32(ledgerSeq + 50) })
    )
  })

  it("pays a contract into its own balance entry with the issuer's flags", () => {
    const world = paidWorld()
    world.account(issuer, 100_0000000n, { flags: 8 })
    const result = succeeded(world.call("transfer", transferArgs(payer, someContract, 7n), { by: payer }))
    result.changes.commit()
    expect(succeeded(world.call("balance", [addressVal(someContract)])).returnValue).toEqual(i128(7n))
    const key = contractDataKey(contractAddress(world.contractId()), vec([sym("Balance"), addressVal(someContract)]), 1)
    const entry = world.store.getEntry(key)
    expect(entry?.data.type === 6 && entry.data.contractData.val).toEqual(
      structMap({ amount: i128(7n), authorized: bool(true), clawback: bool(true) })
    )
  })

  it("refuses a new contract balance when the issuer requires authorization", () => {
    const world = paidWorld()
    world.account(issuer, 100_0000000n, { flags: 1 })
    expect(errorOf(world.call("transfer", transferArgs(payer, someContract, 7n), { by: payer }))).toMatch(/#11\)/)
  })

  it("deauthorizes to maintain liabilities and authorizes again", () => {
    const world = paidWorld()
    world.account(issuer, 100_0000000n, { flags: 2 })
    succeeded(world.call("set_authorized", [addressVal(payer.address), bool(false)], { by: issuer })).changes.commit()
    expect(succeeded(world.call("authorized", [addressVal(payer.address)])).returnValue).toEqual(bool(false))
    const line = world.store.getEntry({ type: 1, trustLine: { accountId: payer.id, asset: usd } })
    expect(line?.data.type === 1 && line.data.trustLine.flags).toBe(2)
    succeeded(
      world.call("set_authorized", [addressVal(payer.address), bool(true)], { by: issuer, nonce: 8n })
    ).changes.commit()
    expect(succeeded(world.call("authorized", [addressVal(payer.address)])).returnValue).toEqual(bool(true))
  })

  it("hands the administration over, after which the old administrator cannot mint", () => {
    const world = paidWorld()
    succeeded(world.call("set_admin", [addressVal(stranger.address)], { by: issuer })).changes.commit()
    expect(succeeded(world.call("admin", [])).returnValue).toEqual(addressVal(stranger.address))
    expect(errorOf(world.call("mint", [addressVal(payer.address), i128(1n)], { by: issuer }))).toMatch(
      /Unauthorized function call/
    )
  })

  it("opens a trustline under the account's own authorization, once", () => {
    const world = paidWorld()
    expect(errorOf(world.call("trust", [addressVal(sponsor.address)], { auth: [] }))).toMatch(
      /Unauthorized function call/
    )
    succeeded(world.call("trust", [addressVal(sponsor.address)])).changes.commit()
    expect(lineBalance(world.store, sponsor)).toBe(0n)
    const account = world.store.getEntry(accountKey(sponsor.id))
    expect(account?.data.type === 0 && account.data.account.numSubEntries).toBe(1)
    expect(succeeded(world.call("trust", [addressVal(sponsor.address)], { auth: [] })).ok).toBe(true)
    expect(succeeded(world.call("trust", [addressVal(someContract)], { auth: [] })).ok).toBe(true)
  })

  it("creates an account that a native transfer of two reserves reaches", () => {
    const world = paidWorld()
    const result = succeeded(world.call("transfer", transferArgs(payer, stranger, 1_0000000n), { by: payer }, native))
    const account = result.changes.getEntry(accountKey(stranger.id))
    expect(account?.data.type === 0 && account.data.account.balance).toBe(1_0000000n)
    expect(account?.data.type === 0 && account.data.account.seqNum).toBe(BigInt(ledgerSeq) << 32n)
  })

  it("reads balances: the issuer's is unlimited, an unknown contract's is zero", () => {
    const world = paidWorld()
    expect(succeeded(world.call("balance", [addressVal(payer.address)])).returnValue).toEqual(i128(1_000n))
    expect(succeeded(world.call("balance", [addressVal(issuer.address)])).returnValue).toEqual(i128(INT64_MAX))
    expect(succeeded(world.call("balance", [addressVal(someContract)])).returnValue).toEqual(i128(0n))
  })

  it("knows its decimals, name and symbol", () => {
    const world = paidWorld()
    expect(succeeded(world.call("decimals", [])).returnValue).toEqual(u32(7))
    expect(succeeded(world.call("symbol", [])).returnValue).toEqual({ type: 14, str: xdrText("USD") })
    expect(succeeded(world.call("name", [], {}, native)).returnValue).toEqual({ type: 14, str: xdrText("native") })
  })
})

describe("creating an asset's contract", () => {
  it("creates an asset's contract at its id, once", () => {
    const world = new World()
    world.account(sponsor)
    const create = {
      type: 1,
      createContract: { contractIdPreimage: { type: 1, fromAsset: usd }, executable: { type: 1 } }
    } as const
    const result = succeeded(world.run(create, []))
    expect(result.returnValue).toEqual(addressVal(contractAddress(world.contractId())))
    const made = result.changes.getEntry(contractInstanceKey(contractAddress(world.contractId())))
    const reference = new World()
    reference.sac()
    const expected = reference.store.getEntry(contractInstanceKey(contractAddress(world.contractId())))
    expect(codec.LedgerEntryData.encode(made!.data)).toEqual(codec.LedgerEntryData.encode(expected!.data))
    result.changes.commit()
    expect(errorOf(world.run(create, []))).toBe("Error(Storage, ExistingValue) contract already exists")
  })

  it("gives the test network's USDC its published contract id", () => {
    const circle = accountOfStrKey("GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5")
    const id = new World().contractId({ type: 1, alphaNum4: { assetCode: fromLatin1("USDC"), issuer: circle } })
    expect(addressStrKey(contractAddress(id))).toBe("CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA")
  })
})
