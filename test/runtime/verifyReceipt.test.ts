// `tollkeeper receipts verify` over stored files: both forms from the committed vectors, the current log, the seller's
// receipt with the draft's outcomes, and each kind of file that contradicts its claims.
import { secp256k1 } from "@noble/curves/secp256k1.js"
import { generateKeyPairSync, sign } from "node:crypto"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cosignedAt } from "../../examples/receipts/cosign.mjs"
import { canonical, openReceipt } from "../../examples/receipts/verify.mjs"
import { openWitness } from "../../examples/receipts/witness.mjs"
import { addressOfKey, attestationDigest, attestationSigner } from "../../runtime/attestationSigner.ts"
import { verifyReceipt, verifyStatement, type VerifyOptions } from "../../runtime/verifyReceipt.ts"
import {
  checkpointOf,
  claimsOf,
  did,
  didDocument,
  jwsOf,
  keyEntryOf,
  levelsOf,
  makeKey,
  methodOf,
  outcomeOf,
  receiptOf,
  rootOf,
  sha,
  writeLog
} from "../support/receiptLog.ts"
import { makeForgeries } from "../support/receiptForgeries.ts"
import { makeVectors, vectorsFile } from "../support/receiptVectors.ts"

const committed = JSON.parse(readFileSync(vectorsFile, "utf8"))

describe("the committed vectors", () => {
  it("are what their writer makes", () => {
    expect(JSON.parse(JSON.stringify(makeVectors()))).toEqual(committed)
  })

  it.each(committed.vectors as ReadonlyArray<any>)(
    "verify: $name",
    async ({ attestation, claims, digest, receipt }) => {
      expect((await openReceipt(receipt, committed.did)).claims).toEqual(claims)
      expect(Buffer.from(attestationDigest(attestation.payload)).toString("hex")).toBe(digest)
      expect(attestationSigner(attestation)).toBe(attestation.payload.facilitator.toLowerCase())
    }
  )

  it("recover to another address when one member is changed", () => {
    const { attestation } = committed.vectors[0]
    for (const member of Object.keys(attestation.payload)) {
      const value = member === "version" ? 2 : ["amount", "facilitatorFee", "observedAt"].includes(member) ? "7" : "x"
      const changed = { ...attestation, payload: { ...attestation.payload, [member]: value } }
      expect(attestationSigner(changed)).not.toBe(attestation.payload.facilitator.toLowerCase())
    }
  })
})

const [key, log] = [makeKey(did, "receipt"), makeKey(did, "log")]
const seller = generateKeyPairSync("ed25519")
const sellerKid = "did:web:seller.example#key-1"
const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")

/** The seller's JWS of `offer-receipt`. */
const deliveryOf = (change: object) => {
  const { network, payer, resource, transaction } = claimsOf(2)
  const payload = { version: 1, network, resourceUrl: resource, payer, issuedAt: 1_790_000_003, transaction, ...change }
  const signed = `${b64u(JSON.stringify({ alg: "EdDSA", kid: sellerKid }))}.${b64u(JSON.stringify(payload))}`
  return { format: "jws", signature: `${signed}.${b64u(sign(null, Buffer.from(signed), seller.privateKey))}` }
}

let folder = ""
const put = async (name: string, value: unknown) => {
  const file = join(folder, name)
  await writeFile(file, typeof value === "string" ? value : JSON.stringify(value))
  return file
}
let options: Pick<VerifyOptions, "did" | "sellerDid" | "expected">
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "verify-receipt-"))
  const sellerKey = { id: sellerKid, publicKeyJwk: seller.publicKey.export({ format: "jwk" }) }
  options = {
    did: await put("did.json", didDocument(methodOf(key), methodOf(log))),
    sellerDid: await put("seller.json", { id: "did:web:seller.example", verificationMethod: [sellerKey] }),
    expected: {}
  }
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const settledOf = (n: number, extensions: object = {}, change: object = {}) => {
  const { network, payer, transaction } = claimsOf(n)
  const ours = { "tollkeeper-receipt": { info: { format: "jws", receipt: receiptOf(key, n) } } }
  return {
    success: true,
    network,
    payer,
    transaction,
    amount: "10000",
    extensions: { ...ours, ...extensions },
    ...change
  }
}
const verifyKept = async (value: unknown, more: Partial<VerifyOptions> = {}) =>
  verifyReceipt({ ...options, ...more, file: await put("kept.json", value) })

describe("a kept receipt", () => {
  it("is read as a JWS, a settle answer and a PAYMENT-RESPONSE header", async () => {
    for (const kept of [receiptOf(key, 2), settledOf(2), Buffer.from(JSON.stringify(settledOf(2))).toString("base64")])
      expect((await verifyKept(kept)).claims).toEqual(claimsOf(2))
  })

  it("is the same payment's in the other dialect", async () => {
    expect((await verifyKept(settledOf(2, {}, { network: "ledger:testnet" }))).claims).toEqual(claimsOf(2))
    await expect(verifyKept(settledOf(2, {}, { network: "ledger:pubnet" }))).rejects.toThrow("another payment")
  })

  it("is refused beside another payment's answer: of another transaction, payer, amount or network", async () => {
    for (const change of [
      { transaction: "0".repeat(64) },
      { payer: "GOTHER" },
      { amount: "1" },
      { network: "stellar:pubnet" }
    ])
      await expect(verifyKept(settledOf(2, {}, change))).rejects.toThrow("another payment")
  })

  it("is refused for a second resource, and for terms that it does not have", async () => {
    const resource = "https://seller.example/weather"
    await verifyKept(receiptOf(key, 2), { expected: { resource, amount: "10000" } })
    for (const expected of [{ resource: "https://seller.example/other" }, { amount: "10001" }, { amuont: "10000" }])
      await expect(verifyKept(receiptOf(key, 2), { expected: expected as never })).rejects.toThrow(
        "not what was expected"
      )
  })

  it("is refused by another facilitator's document, and where its answer has none", async () => {
    const other = await put("other.json", { ...didDocument(methodOf(key)), id: "did:web:evil.example" })
    await expect(verifyKept(receiptOf(key, 2), { did: other })).rejects.toThrow("the document is of did:web:evil")
    await expect(verifyKept({ success: false, errorReason: "x", transaction: "" })).rejects.toThrow("no receipt")
  })

  it("is compared with the resource of a long URL by its hash", async () => {
    const resource = `https://seller.example/${"a".repeat(300)}`
    const { resource: _, ...claims } = claimsOf(2)
    const receipt = jwsOf(key, canonical({ ...claims, resourceHash: `sha256:${sha(resource).toString("hex")}` }))
    await verifyKept(receipt, { expected: { resource } })
    await expect(verifyKept(receipt, { expected: { resource: `${resource}b` } })).rejects.toThrow("not what was")
    const delivered = async (resourceUrl: string) => {
      const extensions = {
        "tollkeeper-receipt": { info: { receipt } },
        "offer-receipt": { info: { receipt: deliveryOf({ resourceUrl }) } }
      }
      return (await verifyKept({ extensions })).outcome
    }
    expect([await delivered(resource), await delivered(`${resource}b`)]).toEqual(["COMPLETE", "MISMATCH"])
  })

  it("comes with an attestation of a key of did.json, and with none that another key signed", async () => {
    const [{ attestation, receipt }] = committed.vectors
    const asIs = await put("vectors-did.json", committed.did)
    const kept = { receipt, attestation, outcomes: [] }
    const { checks } = await verifyKept(kept, { did: asIs })
    expect(checks.at(-1)).toContain("says the same")
    const secret = Buffer.alloc(32, 7)
    const address = addressOfKey(jwkOf(secp256k1.getPublicKey(secret, false)))
    const payload = { ...attestation.payload, facilitator: address }
    const digest = attestationDigest(payload)
    const signed = secp256k1.sign(digest, secret, { prehash: false, format: "recovered" })
    const signature = `0x${Buffer.from([...signed.subarray(1), 27 + signed[0]!]).toString("hex")}`
    const forged = { format: "eip712", payload, signature }
    expect(attestationSigner(forged)).toBe(address)
    await expect(verifyKept({ ...kept, attestation: forged }, { did: asIs })).rejects.toThrow(`no key of ${address}`)
  })

  it("is refused under a retired key without a proof, which a stolen one cannot make", async () => {
    const retired = await put("retired.json", didDocument(methodOf(key, 0, 1_790_000_100), methodOf(log)))
    await expect(verifyKept(receiptOf(key, 2), { did: retired })).rejects.toThrow("is retired")
  })
})

describe("the command", () => {
  const { forgeries, passing } = makeForgeries()

  it("verifies what is genuine, and refuses every forgery", async () => {
    for (const { answer, did: document } of passing)
      await verifyKept(answer, { did: await put("forged-did.json", document) })
    for (const { answer, did: document, kind } of forgeries) {
      const asked = verifyKept(answer, { did: await put("forged-did.json", document) })
      await expect(asked, kind).rejects.toThrow()
    }
  })
})

describe("a statement", () => {
  it("is checked line by line, and a payment counts once", async () => {
    const lines = [
      ...Array.from({ length: 300 }, (_, n) => receiptOf(key, n)),
      "",
      JSON.stringify(settledOf(300)),
      receiptOf(key, 7),
      JSON.stringify(settledOf(301, {}, { amount: "1" })),
      "no receipt",
      receiptOf(makeKey(did, "receipt"), 302)
    ]
    const file = await put("statement.jsonl", lines.join("\n"))
    const { refused, totals, verified } = await verifyStatement({ ...options, file })
    expect(verified).toBe(301)
    expect(totals).toEqual({ "stellar:testnet CASSET": String(301 * 10_000) })
    expect(refused.map(({ line }) => line)).toEqual([303, 304, 305, 306])
    expect(refused[0]!.why).toBe("line 8 is of the same payment")
  })
})

describe("payment and delivery", () => {
  it.each([
    ["COMPLETE", {}],
    ["UNLINKED", { transaction: "" }],
    ["UNLINKED", { transaction: undefined }]
  ])("are %s with %j", async (outcome, change) => {
    const kept = settledOf(2, { "offer-receipt": { info: { receipt: deliveryOf(change) } } })
    expect((await verifyKept(kept)).outcome).toBe(outcome)
  })

  it.each([
    { transaction: "0".repeat(64) },
    { network: "stellar:pubnet" },
    { payer: "GOTHER" },
    { resourceUrl: "https://seller.example/other" }
  ])("are a MISMATCH with %j", async (change) => {
    const kept = settledOf(2, { "offer-receipt": { info: { receipt: deliveryOf(change) } } })
    expect((await verifyKept(kept)).outcome).toBe("MISMATCH")
  })

  it("are PAYMENT_ONLY and DELIVERY_ONLY alone, and a delivery that was not signed counts for nothing", async () => {
    expect((await verifyKept(settledOf(2))).outcome).toBe("PAYMENT_ONLY")
    const delivery = { info: { receipt: deliveryOf({}) } }
    const { tollkeeper: _, ...rest } = { ...settledOf(2), tollkeeper: 0 }
    expect((await verifyKept({ ...rest, extensions: { "offer-receipt": delivery } })).outcome).toBe("DELIVERY_ONLY")
    const signature = delivery.info.receipt.signature.replace(/\.[^.]+$/, `.${b64u(new Uint8Array(64))}`)
    const forged = settledOf(2, { "offer-receipt": { info: { receipt: { format: "jws", signature } } } })
    await expect(verifyKept(forged)).rejects.toThrow("did not sign it")
    expect((await verifyKept(forged, { sellerDid: undefined })).outcome).toBe("PAYMENT_ONLY")
  })
})

describe("the log by now", () => {
  const entries = Array.from({ length: 600 }, (_, n) => outcomeOf(receiptOf(key, n), n).entry)
  /** An answer of `GET /receipts/HASH?proof=1` when the log had 300 leaves. */
  const answer = async () => {
    const levels = levelsOf(entries.slice(0, 300))
    const path: Array<string> = []
    // The audit path by the definition: siblings of complete nodes, then the rest of the tree.
    const rest = (from: number, to: number): Buffer => rootOf(levelsOf(entries.slice(from, to)), to - from)
    for (let height = 0; height < 8; height++) path.push(levels[height]![(2 >> height) ^ 1]!.toString("hex"))
    path.push(rest(256, 300).toString("hex"))
    const { entry, record, salt } = outcomeOf(receiptOf(key, 2), 2)
    const checkpoint = checkpointOf(log, 300, rootOf(levels, 300))
    const leafHash = sha(Buffer.of(0), entry).toString("hex")
    const proof = { epoch: 1, index: 2, size: 300, leafHash, hashes: path, checkpoint }
    return { receipt: receiptOf(key, 2), attestation: null, outcomes: [{ record, salt, proof }] }
  }

  it("continues the proof's checkpoint, and has the leaf", async () => {
    await writeLog(join(folder, "good/log/1"), log, entries)
    const { checks } = await verifyKept(await answer(), { log: join(folder, "good") })
    expect(checks.at(-2)).toBe("leaf 2 is in the log of 600, which continues the one of 300")
    expect(checks.at(-1)).toMatch(/^the log's newest checkpoint is of 2/)
  })

  it.each([
    ["is of", (now: number) => `time ${now - 90_000}\n`],
    ["has no time", () => ""]
  ])("is refused when frozen: its checkpoint %s", async (why, lineAt) => {
    const place = join(folder, `frozen ${why}`)
    await writeLog(join(place, "log/1"), log, entries)
    const line = lineAt(Math.floor(Date.now() / 1_000))
    const stale = checkpointOf(log, 600, rootOf(levelsOf(entries), 600), undefined, undefined, line)
    await writeFile(join(place, "log/1/checkpoint"), stale)
    const frozen = `the log may be frozen: its checkpoint ${why}`
    await expect(verifyKept(await answer(), { log: place })).rejects.toThrow(frozen)
    if (line !== "") await verifyKept(await answer(), { log: place, maxAge: 100_000 })
    const kept = await answer()
    const { checkpoint } = kept.outcomes[0]!.proof
    kept.outcomes[0]!.proof.checkpoint = checkpointOf(
      log,
      300,
      rootOf(levelsOf(entries), 300),
      undefined,
      undefined,
      line
    )
    expect(checkpoint).not.toBe(kept.outcomes[0]!.proof.checkpoint)
    await expect(verifyKept(kept, { maxAge: 3_600 })).rejects.toThrow(frozen)
    await verifyKept(kept)
  })

  it("is refused where it was forked since, or went back", async () => {
    const forked = entries.with(299, outcomeOf(receiptOf(key, 299), 299, { outcome: "failed" }).entry)
    await writeLog(join(folder, "forked/log/1"), log, forked)
    await expect(verifyKept(await answer(), { log: join(folder, "forked") })).rejects.toThrow("does not continue")
    await writeLog(join(folder, "shorter/log/1"), log, entries.slice(0, 299))
    await expect(verifyKept(await answer(), { log: join(folder, "shorter") })).rejects.toThrow()
  })

  it("is asked for the proven leaf alone, whatever else is in the answer", async () => {
    const place = join(folder, "proven")
    await writeLog(join(place, "log/1"), log, entries)
    const genuine = (await answer()).outcomes[0]!
    // A log made for one reader: its only leaf belongs to a receipt that the published log does not contain.
    const receipt = receiptOf(key, 9_000)
    const own = outcomeOf(receipt, 9_000)
    const checkpoint = checkpointOf(log, 1, rootOf(levelsOf([own.entry]), 1))
    const leafHash = sha(Buffer.of(0), own.entry).toString("hex")
    const proof = { ...genuine.proof, index: 0, size: 1, leafHash, hashes: [], checkpoint }
    const made = { receipt, attestation: null, outcomes: [genuine, { record: own.record, salt: own.salt, proof }] }
    expect((await verifyKept(made)).checks.at(1)).toContain("its leaf is in the log")
    await expect(verifyKept(made, { log: place })).rejects.toThrow("does not continue")
    const document = didDocument(methodOf(key), methodOf(log))
    const witness = await openWitness(document, join(folder, "proven.json"), "witness.example")
    genuine.proof.checkpoint += String(await witness.add(`old 0\n\n${genuine.proof.checkpoint}`))
    await expect(verifyKept(made, { witnesses: [witness.key] })).rejects.toThrow("did not cosign")
  })

  it("is of the proof's epoch, and says so where it went back", async () => {
    const kept = await answer()
    await writeLog(join(folder, "epochs/log/1"), log, entries.slice(0, 299))
    await expect(verifyKept(kept, { log: join(folder, "epochs") })).rejects.toThrow("went back, from 300 leaves to 299")
    await writeLog(join(folder, "epochs/log/1"), log, entries, "pay.example/log/2")
    await expect(verifyKept(kept, { log: join(folder, "epochs") })).rejects.toThrow("the proof is of pay.example/log")
    kept.outcomes[0]!.proof.epoch = 7
    await writeLog(join(folder, "epochs/log/1"), log, entries)
    await verifyKept(kept, { log: join(folder, "epochs") })
  })

  it("decides about a retired key of the log, by its own entries", async () => {
    const retired = 1_790_000_100
    const next = makeKey(did, "log")
    const rotated = didDocument(methodOf(key), methodOf(log, 0, retired), methodOf(next, retired))
    const asked = { did: await put("rotated.json", rotated) }
    await expect(verifyKept(await answer(), asked)).rejects.toThrow("a retired key of the log")
    const place = join(folder, "rotated")
    // The log is still signed with the retired key, by a thief or with a lying document. Its entries show which key is
    // right.
    await writeLog(join(place, "log/1"), log, entries)
    await expect(verifyKept(await answer(), { ...asked, log: place })).rejects.toThrow("does not list it as in force")
    const said = [...entries, keyEntryOf("announced", log, 0)]
    await writeLog(join(place, "log/1"), log, said)
    await verifyKept(await answer(), { ...asked, log: place })
    const over = [...said, keyEntryOf("announced", next, retired), keyEntryOf("retired", log, retired)]
    await writeLog(join(place, "log/1"), log, over)
    const unsaid = { did: await put("silent.json", didDocument(methodOf(key), methodOf(log), methodOf(next))) }
    for (const one of [asked, unsaid])
      await expect(verifyKept(await answer(), { ...one, log: place })).rejects.toThrow("does not list it as in force")
    await writeLog(join(place, "log/1"), next, over)
    for (const one of [asked, unsaid]) await verifyKept(await answer(), { ...one, log: place })
  })

  it("is not shown by a witness that cosigned it under a retired key", async () => {
    const [now, kept] = [Math.floor(Date.now() / 1_000), await answer()]
    const witness = await openWitness(didDocument(methodOf(log)), join(folder, "late.json"), "witness.example")
    const { proof } = kept.outcomes[0]!
    proof.checkpoint += String(await witness.add(`old 0\n\n${proof.checkpoint}`))
    const retiredAt = async (at: number) => ({
      did: await put(`retired-${at}.json`, didDocument(methodOf(key), methodOf(log, 0, at))),
      witnesses: [witness.key]
    })
    await verifyKept(kept, await retiredAt(now + 60))
    await expect(verifyKept(kept, await retiredAt(now - 60))).rejects.toThrow("a retired key of the log")
  })

  it("is the one that a witness has seen, by its line on the proof's checkpoint or a later one", async () => {
    const document = didDocument(methodOf(key), methodOf(log))
    const witness = await openWitness(document, join(folder, "witness.json"), "witness.example")
    const [kept, bare] = [await answer(), await answer()]
    const { proof } = kept.outcomes[0]!
    const line = String(await witness.add(`old 0\n\n${proof.checkpoint}`))
    proof.checkpoint += line
    const { checks } = await verifyKept(kept, { witnesses: [witness.key] })
    expect(checks.at(-1)).toMatch(/^the witness witness\.example cosigned the log of 300 at 20/)

    await expect(verifyKept(bare, { witnesses: [witness.key] })).rejects.toThrow("did not cosign")
    const note = await writeLog(join(folder, "cosigned/log/1"), log, entries)
    const more = await openWitness(document, join(folder, "more.json"), "witness.example")
    await writeFile(join(folder, "cosigned/log/1/checkpoint"), note + (await more.add(`old 0\n\n${note}`)))
    const later = await verifyKept(bare, { witnesses: [more.key], log: join(folder, "cosigned") })
    expect(later.checks.at(-1)).toContain("cosigned the log of 600")
    // With the same name and another key; for another checkpoint; at another time; without anything to cosign; without
    // a key.
    await expect(verifyKept(kept, { witnesses: [more.key] })).rejects.toThrow("did not cosign")
    const { proof: moved } = bare.outcomes[0]!
    const other = checkpointOf(log, 299, rootOf(levelsOf(entries.slice(0, 299)), 299))
    moved.checkpoint += line.replace(/ (\S+)\n$/, (_, text) => ` ${atAnotherTime(text)}\n`)
    await expect(verifyKept(bare, { witnesses: [witness.key] })).rejects.toThrow("did not cosign")
    expect(await cosignedAt(other + line, witness.key)).toBeUndefined()
    await expect(verifyKept(receiptOf(key, 2), { witnesses: [witness.key] })).rejects.toThrow("there is no proof")
    await expect(verifyKept(kept, { witnesses: ["witness.example"] })).rejects.toThrow("is no witness's key")
  })
})

const jwkOf = (point: Uint8Array) => ({ x: b64u(point.subarray(1, 33)), y: b64u(point.subarray(33)) })

/** A cosignature with a changed time. */
const atAnotherTime = (text: string): string => {
  const bytes = Buffer.from(text, "base64")
  bytes[11]! ^= 1
  return bytes.toString("base64")
}
