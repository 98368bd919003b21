// Receipts through official sellers and clients, unmodified: the buyer of each generation reads one, and the published
// script verifies it against did.json, log and ledger. Then a forger's attempts against a running facilitator, and a
// second facilitator with the same keys and a different log.
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { createHash, createHmac } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Keypair } from "@stellar/stellar-sdk"
import { checkKept, readKept } from "../../examples/receipts/check.mjs"
import { compareStories, openStory } from "../../examples/receipts/two-stories.mjs"
import { openCheckpoint, openReceipt, verify } from "../../examples/receipts/verify.mjs"
import { attestationSigner } from "../../runtime/attestationSigner.ts"
import { verifyReceipt } from "../../runtime/verifyReceipt.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { type Forgery, makeForgeries } from "../support/receiptForgeries.ts"
import { post } from "../../runtime/redteam/ask.ts"
import { price } from "./officialCases.ts"
import { installSet, type OfficialSet, type Purchase, type SetName, startSet } from "./officialSet.ts"
import type { Part } from "./report.ts"
import { root, startWorld, type World } from "./world.ts"

const network = "stellar:testnet"
/** Proxies with header buffers of 4 KiB forward it. */
const headerBytesMax = 4_096
const proofWaitMillis = 5_000

const b64u = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")
const getJson = async (url: string): Promise<any> => (await fetch(url)).json()
const didOf = (world: World) => getJson(`${world.facilitator}/.well-known/did.json`)
const jwsOf = ({ receipt }: Purchase): string => receipt.extensions["tollkeeper-receipt"].info.receipt

/** An answer of `GET /receipts/:hash?proof=1`, once a checkpoint covers it. */
export const provenOf = async (world: World, transaction: string): Promise<any> => {
  const until = performance.now() + proofWaitMillis
  for (;;) {
    const answer = await getJson(`${world.facilitator}/receipts/${transaction}?proof=1`)
    if (answer.outcomes?.every(({ proof }: any) => proof)) return answer
    if (performance.now() > until) throw new Error(`no proof within ${proofWaitMillis} ms: ${JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const buyerCases = async (name: SetName, set: OfficialSet, world: World, part: Part, payTo: string) => {
  const buyer = await world.account(1)
  let purchase: Purchase | undefined
  await part.check("the buyer reads a receipt in PAYMENT-RESPONSE, below 4 KiB", async () => {
    purchase = await set.buy({
      path: "/order",
      secret: buyer.secret(),
      identifier: `pay_${b64u(buyer.rawPublicKey())}`
    })
    assert.equal(purchase.status, 200, JSON.stringify(purchase).slice(0, 500))
    const header = Buffer.from(JSON.stringify(purchase.receipt)).toString("base64")
    part.figure("header bytes", String(header.length))
    assert.ok(header.length < headerBytesMax, `${header.length} bytes`)
    assert.equal(attestationSigner(purchase.receipt.extensions["facilitator-attestation"].info.attestation).length, 42)
  })
  await part.check("its claims are the payment, signed by a key of did.json", async () => {
    const { claims } = await openReceipt(jwsOf(purchase!), await didOf(world))
    const { ledger } = await world.rpc("getTransaction", { hash: purchase!.receipt.transaction })
    assert.deepEqual(
      [claims.transaction, claims.payer, claims.payTo, claims.amount, claims.network, claims.scheme, claims.ledger],
      [purchase!.receipt.transaction, buyer.publicKey(), payTo, String(price), network, "exact", ledger]
    )
    assert.match(claims.identifierHash, /^sha256:[0-9a-f]{64}$/)
  })
  await part.check("the script verifies it with its proof, within 5 s", async () => {
    const answer = await provenOf(world, purchase!.receipt.transaction)
    assert.equal(answer.receipt, jwsOf(purchase!))
    assert.equal((await verify(answer, await didOf(world))).transaction, purchase!.receipt.transaction)
  })
  await part.check("the stored success is answered with the same bytes", async () => {
    const { body } = await makePayment({ rpc: world.rpc, payer: buyer, payTo, amount: price })
    const settle = () =>
      post(`${world.facilitator}/settle`, body, 30_000, { "idempotency-key": `receipts-of-set-${name}` })
    const [first, again] = [await settle(), await settle()]
    assert.equal(first.json.success, true, first.text)
    assert.match(first.json.extensions["tollkeeper-receipt"].info.receipt, /^ey/)
    assert.equal(again.text, first.text)
    await provenOf(world, first.json.transaction)
  })
  if (name === "c")
    await part.check("the official code of offer-receipt resolves its key and verifies it", async () => {
      const file = "node_modules/@x402/extensions/dist/esm/offer-receipt/index.mjs"
      const official = await import(join(root, "test", "official", "c", file))
      const payload = await official.verifyReceiptSignatureJWS({ format: "jws", signature: jwsOf(purchase!) })
      assert.equal(payload.transaction, purchase!.receipt.transaction)
    })
  return purchase!
}

/** Every part of a receipt that a forger can change; each change is refused. */
const forgeries = async (jws: string, did: any): Promise<ReadonlyArray<readonly [what: string, jws: string]>> => {
  const [header = "", payload = "", signature = ""] = jws.split(".")
  const text = Buffer.from(payload, "base64url").toString()
  const { kid } = JSON.parse(Buffer.from(header, "base64url").toString())
  const { x } = did.verificationMethod.find(({ id }: any) => id === kid).publicKeyJwk
  const headed = (alg: string) => b64u(JSON.stringify({ alg, kid, typ: "tollkeeper-receipt+jws" }))
  const hs256 = `${headed("HS256")}.${payload}`
  const hmac = createHmac("sha256", Buffer.from(x, "base64url")).update(hs256).digest("base64url")
  return [
    ["a swapped amount", `${header}.${b64u(text.replace(`"amount":"${price}"`, '"amount":"1"'))}.${signature}`],
    ["a swapped payee", `${header}.${b64u(text.replace(/"payTo":"G/, '"payTo":"C'))}.${signature}`],
    ["JSON that is not canonical", `${header}.${b64u(text.replace("{", "{ "))}.${signature}`],
    ["the algorithm none", `${headed("none")}.${payload}.`],
    ["HS256 keyed by the public key", `${hs256}.${hmac}`],
    ["ES256 in name", `${headed("ES256")}.${payload}.${signature}`]
  ]
}

const attackCases = async (set: OfficialSet, world: World, part: Part, mine: Purchase): Promise<void> => {
  const did = await didOf(world)
  const other = await set.buy({ path: "/weather?city=Riga", secret: (await world.account(1)).secret() })
  for (const [what, jws] of await forgeries(jwsOf(mine), did))
    await part.check(`refused: ${what}`, () => assert.rejects(openReceipt(jws, did)))
  await part.check("refused: the receipt of another's payment", async () => {
    const settled = { ...mine.receipt, extensions: other.receipt.extensions }
    await assert.rejects(checkKept({ receipt: jwsOf(other), outcomes: [], settled }, did), /another payment/)
    const answer = await provenOf(world, mine.receipt.transaction)
    await assert.rejects(verify({ ...answer, receipt: jwsOf(other) }, did))
  })
  await part.check(
    "refused: a receipt replayed for a second resource, whose settle is a conflict without one",
    async () => {
      const file = join(await mkdtemp(join(tmpdir(), "receipt-")), "kept")
      await writeFile(file, jwsOf(other))
      const asked = { file, expected: { resource: `${set.sellerUrl}/order` } }
      await assert.rejects(verifyReceipt(asked), /not what was expected/)
      await provenOf(world, other.receipt.transaction)
      await verifyReceipt({ ...asked, expected: {}, ledger: world.ledger, log: world.facilitator })
      await rm(join(file, ".."), { recursive: true })
      const body = JSON.parse(set.tap.of("/settle").at(-1)!.body)
      body.paymentPayload.resource.url = `${set.sellerUrl}/order`
      const { json, status } = await post(`${world.facilitator}/settle`, body)
      assert.deepEqual([status, json.success, json.extensions], [409, false, undefined])
    }
  )
  await part.check("refused: a payment that was not settled carries no receipt, and has none", async () => {
    const poor = await world.account(0)
    const refused = await set.buy({ path: "/plain", secret: poor.secret() })
    assert.notEqual(refused.status, 200)
    assert.doesNotMatch(JSON.stringify(refused), /tollkeeper-receipt/)
  })
  await part.check(
    "refused: a hash asked for by a stranger with a signed challenge; payer and payee are answered",
    async () => {
      const challengeOf = async (account: Keypair, transaction: string): Promise<number> => {
        const { json } = await post(`${world.facilitator}/receipts/challenge`, { account: account.publicKey() })
        const digest = createHash("sha256").update(`Stellar Signed Message:\n${json.challenge}`).digest()
        const signature = Buffer.from(account.sign(digest)).toString("base64")
        const asked = { account: account.publicKey(), challenge: json.challenge, signature }
        return (await post(`${world.facilitator}/receipts/${transaction}`, asked)).status
      }
      const stranger = await world.account(0)
      const payer = await world.account(1)
      const { receipt } = await set.buy({ path: "/plain", secret: payer.secret() })
      await provenOf(world, receipt.transaction)
      assert.equal(await challengeOf(stranger, receipt.transaction), 404)
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      assert.equal(await challengeOf(payer, receipt.transaction), 200)
      const unknown = await fetch(`${world.facilitator}/receipts/${"0".repeat(64)}`)
      assert.equal(unknown.status, 404)
    }
  )
  await part.check("refused: a receipt under a key that is retired, without the log's proof of its time", async () => {
    const { claims, key } = await openReceipt(jwsOf(mine), did)
    const retired = (validUntil: number) => ({
      ...did,
      verificationMethod: did.verificationMethod.map((one: any) => (one.id === key.id ? { ...one, validUntil } : one))
    })
    const kept = { receipt: jwsOf(mine), outcomes: [], settled: mine.receipt }
    await assert.rejects(checkKept(kept, retired(claims.closedAt + 3_600)), /retired/)
    const answer = await provenOf(world, claims.transaction)
    // The log's own entries decide; the document cannot repudiate a receipt.
    for (const seconds of [3_600, -3_600])
      assert.equal((await verify(answer, retired(claims.closedAt + seconds))).amount, String(price))
  })
}

/** Signed and proven forgeries, which the script, the page's code, the command and the Python verifier must refuse. */
const forgeryCases = async (part: Part): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), "forgeries-"))
  const [file, document] = [join(folder, "answer.json"), join(folder, "did.json")]
  const byCommand = () => verifyReceipt({ file, did: document, expected: {} })
  const script = join(root, "examples", "receipts", "verify.py")
  const byPython = () => spawnSync("python3", [script, file, document], { encoding: "utf8" })
  const put = async ({ answer, did }: Forgery) => {
    await writeFile(file, JSON.stringify(answer))
    await writeFile(document, JSON.stringify(did))
  }
  const { forgeries, passing } = makeForgeries()
  for (const one of passing)
    await part.check(`verified: ${one.kind}`, async () => {
      await put(one)
      await verify(one.answer, one.did)
      await byCommand()
      assert.equal(byPython().status, 0, byPython().stderr)
    })
  for (const one of forgeries)
    await part.check(`refused: ${one.kind}`, async () => {
      await put(one)
      await assert.rejects(verify(one.answer, one.did))
      await assert.rejects(checkKept(readKept(JSON.stringify(one.answer)), one.did))
      await assert.rejects(byCommand())
      assert.match(byPython().stderr, /^refused: /)
    })
  await rm(folder, { recursive: true })
}

/** Changed rows, which the audit names, and restores, which stop signing: on both databases, by their own tests. */
const plantCases = async (part: Part): Promise<void> => {
  const env = { ...process.env, TOLLKEEPER_TEST_DATABASES: "pglite,postgres" }
  for (const [what, file] of [
    ["the audit names row and member of each plant", "test/kernel/audit/log.daily.test.ts"],
    ["restored databases stop signing", "test/plugins/receipts/forks.daily.test.ts"]
  ] as const)
    await part.check(what, () => {
      const { status, stdout } = spawnSync("npm", ["run", "--silent", "vitest", "--", file], {
        cwd: root,
        env,
        encoding: "utf8"
      })
      assert.equal(status, 0, stdout.slice(-2_000))
    })
}

/** Number of leaves in the log. */
const sizeOf = async (world: World): Promise<number> =>
  (await openCheckpoint(await (await fetch(`${world.facilitator}/log/checkpoint`)).text(), await didOf(world))).size

/** A second facilitator with the same keys and name: both logs have valid signatures, but they are two histories. */
const storyCases = async (world: World, settings: ReadonlyArray<string>, part: Part): Promise<void> => {
  const fork = await startWorld({ set: settings })
  try {
    await part.check("a fork by a second facilitator with the same keys is found, at its first leaf", async () => {
      const [did, payer, payee] = [await didOf(world), await fork.account(1), await fork.account(0)]
      const terms = { rpc: fork.rpc, payer, payTo: payee.publicKey(), amount: price, network }
      const { body } = await makePayment(terms)
      const { json } = await post(`${fork.facilitator}/settle`, body)
      assert.equal(json.success, true, JSON.stringify(json))
      await provenOf(fork, json.transaction)
      const [a, b] = [await openStory(`${world.facilitator}/log`, did), await openStory(`${fork.facilitator}/log`, did)]
      const found = await compareStories(a, b)
      assert.ok(found !== undefined && found.index < Math.min(a.tree.size, b.tree.size), JSON.stringify(found))
      assert.notEqual(found.a.hash, found.b.hash)
      part.figure("first leaf that differs", String(found.index))
    })
  } finally {
    await fork.stop()
  }
}

/** Runs all cases on a separate facilitator with both forms enabled. */
export const receiptCases = async (
  sets: ReadonlyArray<SetName>,
  runPart: (title: string, work: (part: Part) => Promise<void>) => Promise<void>,
  say: (line: string) => void
): Promise<void> => {
  process.env["RECEIPTS_SECRET"] = Keypair.random().secret()
  process.env["RECEIPTS_ATTESTATION_SECRET"] = Buffer.from(Keypair.random().rawSecretKey()).toString("hex")
  const on = ["receipts.attestation=true"]
  const world = await startWorld({ set: on })
  try {
    const { id } = await didOf(world)
    const host = decodeURIComponent(id.replace("did:web:", ""))
    for (const name of sets) {
      await runPart(`receipts: set ${name.toUpperCase()}`, async (part) => {
        await installSet(name, say)
        const seller = await world.account(0)
        const set = await startSet(name, world, seller.publicKey(), network)
        try {
          const before = await sizeOf(world)
          const mine = await buyerCases(name, set, world, part, seller.publicKey())
          await part.check("two payments, one of them asked for again, are two leaves", async () =>
            assert.equal((await sizeOf(world)) - before, 2)
          )
          await attackCases(set, world, part, mine)
        } finally {
          await set.stop()
        }
      })
    }
    await runPart("receipts: forgeries", forgeryCases)
    await runPart("receipts: plants and restores", plantCases)
    await runPart("receipts: two stories", (part) => storyCases(world, [...on, `receipts.host=${host}`], part))
  } finally {
    await world.stop()
  }
}
