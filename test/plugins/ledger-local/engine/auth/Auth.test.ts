import { describe, expect, it } from "vitest"
import { functionString } from "../../../../../plugins/ledger-local/engine/auth/InvocationTracker.ts"
import {
  address as addressVal,
  bytes,
  i128,
  structMap,
  sym,
  u32,
  vec,
  VOID
} from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { fromLatin1, type ScVal } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  type CallOptions,
  crypto,
  errorOf,
  failed,
  type Key,
  keyOf,
  ledgerSeq,
  networkId,
  paidWorld,
  payee,
  payer,
  signatureOf,
  sponsor,
  stranger,
  succeeded,
  transferArgs,
  World
} from "../World.ts"
import type { SorobanAuthorizationEntry } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"

const pay = (options: CallOptions, world: World = paidWorld()) =>
  world.call("transfer", transferArgs(payer, payee, 1n), options)
const refused = "Error(Auth, InvalidAction) failed account authentication with error"
const signerKey = (key: Key) => ({ type: 0 as const, ed25519: key.id.ed25519 })
const maxExpiration = ledgerSeq + 3_110_400 - 1

const hex = (text: string): Uint8Array => Uint8Array.from(text.match(/../g)!, (pair) => Number.parseInt(pair, 16))
const raw = (publicKey: Uint8Array, signature: Uint8Array): ScVal =>
  vec([structMap({ public_key: bytes(publicKey), signature: bytes(signature) })])

describe("credentials", () => {
  it("accepts ADDRESS, ADDRESS_V2 and source account credentials", () => {
    expect(pay({ by: payer, credentials: "v1" }).ok).toBe(true)
    expect(pay({ by: payer, credentials: "v2" }).ok).toBe(true)
    expect(pay({ source: payer }).ok).toBe(true)
  })

  it("credentials of one form do not verify as the other", () => {
    const world = paidWorld()
    const entry = world.sign(payer, world.invocation("transfer", transferArgs(payer, payee, 1n)), { credentials: "v1" })
    if (entry.credentials.type !== 1) throw new Error("unexpected credentials")
    const swapped: SorobanAuthorizationEntry = {
      ...entry,
      credentials: { type: 2, addressV2: entry.credentials.address }
    }
    expect(errorOf(pay({ auth: [swapped] }, world))).toBe(refused)
  })

  it("credentials are bound to their network", () => {
    expect(networkId.length).toBe(32)
    const world = paidWorld()
    const entry = world.sign(payer, world.invocation("transfer", transferArgs(payer, payee, 1n)), {
      signature: () => signatureOf(crypto.sha256(fromLatin1("another payload")), [payer])
    })
    expect(errorOf(pay({ auth: [entry] }, world))).toBe(refused)
  })
})

describe("authorization", () => {
  it("refuses an unauthorized call", () => {
    expect(errorOf(pay({ auth: [] }))).toBe("Error(Auth, InvalidAction) Unauthorized function call for address")
  })

  it("refuses an entry for other arguments, another function or another signer", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 1n)
    for (const entry of [
      world.sign(payer, world.invocation("transfer", transferArgs(payer, payee, 2n))),
      world.sign(payer, world.invocation("burn", args)),
      world.sign(stranger, world.invocation("transfer", args))
    ]) {
      expect(errorOf(world.call("transfer", args, { auth: [entry] }))).toMatch(/Unauthorized function call/)
    }
  })

  it("ignores unused authorization entries and branches", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 1n)
    const root = world.invocation("transfer", args)
    const unused = world.sign(stranger, root)
    const entry = world.sign(payer, root, { sub: [world.invocation("burn", args)] })
    expect(world.call("transfer", args, { auth: [unused, entry] }).ok).toBe(true)
  })

  it("refuses the call for a malformed value in an unused entry", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 1n)
    const root = world.invocation("transfer", args)
    const bad = world.sign(stranger, world.invocation("not a symbol!", args))
    expect(errorOf(world.call("transfer", args, { auth: [world.sign(payer, root), bad] }))).toMatch(
      /^Error\(Value, InvalidInput\)/
    )
  })

  it("uses an entry once", () => {
    const world = paidWorld()
    const entry = world.sign(payer, world.invocation("transfer", transferArgs(payer, payee, 1n)))
    const first = succeeded(pay({ auth: [entry, entry] }, world))
    expect(first.footprint.readWrite.filter((key) => key.type === 6).length).toBe(1)
  })

  it("compares a creation without constructor arguments as the same in both forms", () => {
    const args = {
      contractIdPreimage: { type: 0 as const, fromAddress: { address: payer.address, salt: new Uint8Array(32) } },
      executable: { type: 0 as const, wasmHash: new Uint8Array(32) }
    }
    expect(functionString({ type: 1, createContractHostFn: args })).toBe(
      functionString({ type: 2, createContractV2HostFn: { ...args, constructorArgs: [] } })
    )
  })
})

describe("expiry and nonce", () => {
  it("accept a signature up to its expiration ledger and refuse it after", () => {
    expect(pay({ by: payer, expiration: ledgerSeq }).ok).toBe(true)
    const result = pay({ by: payer, expiration: ledgerSeq - 1 })
    expect(errorOf(result)).toBe("Error(Auth, InvalidInput) signature has expired")
    expect(failed(result).error.args).toEqual([addressVal(payer.address), u32(ledgerSeq), u32(ledgerSeq - 1)])
  })

  it("refuse an expiration beyond the life of any entry", () => {
    expect(pay({ by: payer, expiration: maxExpiration }).ok).toBe(true)
    expect(errorOf(pay({ by: payer, expiration: maxExpiration + 1 }))).toBe(
      "Error(Auth, InvalidInput) signature expiration is too late"
    )
  })

  it("refuse a nonce a second time, also with another expiration", () => {
    const world = paidWorld()
    succeeded(pay({ by: payer }, world)).changes.commit()
    expect(errorOf(pay({ by: payer }, world))).toBe("Error(Auth, ExistingValue) nonce already exists for address")
    expect(errorOf(pay({ by: payer, expiration: ledgerSeq + 200 }, world))).toMatch(/ExistingValue/)
    expect(pay({ by: payer, nonce: 8n }, world).ok).toBe(true)
  })

  it("keeps a nonce until expiry, at least a temporary entry's minimum life", () => {
    const life = (expiration: number): number | undefined => {
      const { changes } = succeeded(pay({ by: payer, expiration }))
      return [...changes.changes()].flatMap(({ after }) =>
        after?.data.type === 9 ? [after.data.ttl.liveUntilLedgerSeq] : []
      )[0]
    }
    expect(life(ledgerSeq + 100)).toBe(ledgerSeq + 719)
    expect(life(ledgerSeq + 5_000)).toBe(ledgerSeq + 5_000)
  })

  it("a failed call consumes no nonce", () => {
    const world = paidWorld()
    const result = world.call("transfer", transferArgs(payer, payee, 5_000n), { by: payer })
    expect(errorOf(result)).toMatch(/#10/)
    expect(pay({ by: payer }, world).ok).toBe(true)
  })
})

describe("a classic account's signature", () => {
  it("an invalid account signature fails authentication and logs the crypto error", () => {
    const flipped = (payload: Uint8Array): ScVal => {
      const signature = crypto.ed25519Sign(payer.seed, payload)
      signature[10]! ^= 1
      return raw(payer.id.ed25519, signature)
    }
    const result = pay({ by: payer, signature: flipped })
    expect(errorOf(result)).toBe(refused)
    const topics = failed(result).diagnostics.flatMap(({ event }) => event.body.v0.topics)
    expect(topics).toContainEqual({ type: 2, error: { type: 5, code: 2 } })
  })

  it("an account signature is a vector of one to twenty maps", () => {
    const sign = (payload: Uint8Array) => crypto.ed25519Sign(payer.seed, payload)
    const good = (payload: Uint8Array): ScVal => signatureOf(payload, [payer])
    const bad: ReadonlyArray<(payload: Uint8Array) => ScVal> = [
      () => VOID,
      () => vec([]),
      (payload) => vec(Array.from({ length: 21 }, () => (good(payload) as Extract<ScVal, { type: 16 }>).vec![0]!)),
      (payload) => vec([good(payload), good(payload)]),
      (payload) => vec([structMap({ public_key: bytes(payer.id.ed25519) }), good(payload)]),
      (payload) => vec([structMap({ public_key: bytes(payer.id.ed25519), signature: bytes(sign(payload).slice(1)) })]),
      (payload) => vec([structMap({ public_key: bytes(payer.id.ed25519.slice(1)), signature: bytes(sign(payload)) })]),
      (payload) => vec([structMap({ public_keys: bytes(payer.id.ed25519), signature: bytes(sign(payload)) })])
    ]
    for (const signature of bad) expect(errorOf(pay({ by: payer, signature }))).toBe(refused)
  })

  it("account signatures must reach the medium threshold", () => {
    const world = paidWorld()
    const signers = [sponsor, stranger].map((key) => ({ key: signerKey(key), weight: 1 }))
    world.account(payer, 100_0000000n, { thresholds: new Uint8Array([1, 0, 2, 0]), signers })
    expect(errorOf(pay({ by: payer }, world))).toBe(refused)
    expect(pay({ by: payer, signers: [payer, stranger] }, world).ok).toBe(true)
    expect(pay({ by: payer, signers: [sponsor, stranger] }, world).ok).toBe(true)
    expect(errorOf(pay({ by: payer, signers: [payer, stranger, keyOf(6)] }, world))).toBe(refused)
  })

  it("does not count a zero-weight master key, duplicates or unordered keys", () => {
    const world = paidWorld()
    world.account(payer, 100_0000000n, {
      thresholds: new Uint8Array([0, 0, 0, 0]),
      signers: [{ key: signerKey(sponsor), weight: 1 }]
    })
    expect(errorOf(pay({ by: payer }, world))).toBe(refused)
    expect(pay({ by: payer, signers: [sponsor] }, world).ok).toBe(true)
    expect(errorOf(pay({ by: payer, signers: [sponsor, sponsor] }, world))).toBe(refused)
    world.account(payer, 100_0000000n, { signers: [{ key: signerKey(sponsor), weight: 1 }] })
    const reversed = (payload: Uint8Array): ScVal => {
      const sorted = signatureOf(payload, [payer, sponsor])
      return sorted.type === 16 ? vec([...sorted.vec!].reverse()) : sorted
    }
    expect(errorOf(pay({ by: payer, signature: reversed }, world))).toBe(refused)
  })

  it("needs an account that exists", () => {
    const world = paidWorld()
    world.store.delete("\0\0\0\0\0\0\0\0" + String.fromCharCode(...payer.id.ed25519))
    expect(errorOf(pay({ by: payer }, world))).toBe(refused)
  })
})

describe("small-order keys and scalars", () => {
  const smallOrder = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"
  ]
  const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n
  const fromLittle = (little: Uint8Array): bigint => little.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  const toLittle = (value: bigint): Uint8Array =>
    Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 255n))

  it("refuses a signer of small order", () => {
    for (const point of smallOrder) {
      const world = paidWorld()
      const key = hex(point)
      world.account(payer, 100_0000000n, { signers: [{ key: { type: 0, ed25519: key }, weight: 1 }] })
      const forged = raw(key, Uint8Array.from([1, ...new Array<number>(63).fill(0)]))
      expect(errorOf(pay({ by: payer, signature: () => forged }, world))).toBe(refused)
    }
  })

  it("refuses a commitment of small order under a good key", async () => {
    const { createHash } = await import("node:crypto")
    const sha512 = (data: Uint8Array): Uint8Array => new Uint8Array(createHash("sha512").update(data).digest())
    const secret = sha512(payer.seed).slice(0, 32)
    secret[0]! &= 248
    secret[31] = (secret[31]! & 127) | 64
    const commitment = hex(smallOrder[0]!)
    const forge = (payload: Uint8Array): ScVal => {
      const challenge = fromLittle(sha512(Uint8Array.from([...commitment, ...payer.id.ed25519, ...payload]))) % ORDER
      const scalar = toLittle((challenge * (fromLittle(secret) % ORDER)) % ORDER)
      return raw(payer.id.ed25519, Uint8Array.from([...commitment, ...scalar]))
    }
    expect(errorOf(pay({ by: payer, signature: forge }))).toBe(refused)
  })

  it("refuses a scalar with the group order added", () => {
    const malleable = (payload: Uint8Array): ScVal => {
      const signature = crypto.ed25519Sign(payer.seed, payload)
      signature.set(toLittle(fromLittle(signature.slice(32)) + ORDER), 32)
      return raw(payer.id.ed25519, signature)
    }
    expect(errorOf(pay({ by: payer, signature: malleable }))).toBe(refused)
  })
})

describe("recording", () => {
  const access = (useUpgradedAuth: boolean) =>
    ({ mode: "record", randomNonce: () => 99n, useUpgradedAuth, allowNonRoot: false }) as const

  it("recording returns unsigned entries in the requested form", () => {
    for (const [upgraded, type] of [
      [false, 1],
      [true, 2]
    ] as const) {
      const [entry] = succeeded(pay({ auth: [], access: access(upgraded) })).recordedAuth!
      expect(entry!.credentials.type).toBe(type)
      const credentials =
        entry!.credentials.type === 1
          ? entry!.credentials.address
          : entry!.credentials.type === 2
            ? entry!.credentials.addressV2
            : undefined
      expect(credentials).toEqual({ address: payer.address, nonce: 99n, signatureExpirationLedger: 0, signature: VOID })
      expect(entry!.rootInvocation).toEqual(paidWorld().invocation("transfer", transferArgs(payer, payee, 1n)))
    }
  })

  it("recording finds the signed call's footprint and needs no source signature", () => {
    const world = paidWorld()
    const { footprint } = succeeded(pay({ auth: [], access: access(true) }, world))
    expect(footprint.readOnly.map((key) => key.type)).toEqual([0, 6])
    expect(pay({ by: payer, nonce: 99n, access: { mode: "enforce", footprint } }, world).ok).toBe(true)
    const own = succeeded(pay({ auth: [], source: payer, access: access(true) }))
    expect(own.recordedAuth![0]!.credentials).toEqual({ type: 0 })
  })

  it("recording reserves the maximum life for the nonce", () => {
    const { rentChanges } = succeeded(pay({ auth: [], access: access(true) }))
    expect(rentChanges.map((change) => change.newLiveUntil)).toEqual([maxExpiration])
  })
})

describe("diagnostics", () => {
  it("diagnostics show the call, the error's origin, and no events", () => {
    const { diagnostics } = failed(paidWorld().call("transfer", transferArgs(payer, payee, 1_001n), { by: payer }))
    const names = diagnostics.map(({ event }) => event.body.v0.topics[0])
    expect(names).toEqual([sym("fn_call"), sym("error")])
    expect(diagnostics[1]!.inSuccessfulContractCall).toBe(false)
    expect(diagnostics[1]!.event.body.v0.topics[1]).toEqual({ type: 2, error: { type: 0, contractCode: 10 } })
  })

  it("show the call, the event and the return of a success", () => {
    const { diagnostics } = succeeded(
      paidWorld().call("transfer", [...transferArgs(payer, payee, 1n).slice(0, 2), i128(1n)], { by: payer })
    )
    expect(diagnostics.map(({ event }) => event.type)).toEqual([2, 1, 2])
  })
})
