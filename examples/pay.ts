// `npm run pay`: one payment, explained step by step. Two new accounts of the local ledger, a seller and a buyer, use
// the facilitator that `npm start` runs; it prints the view of each side, and at the end the ledger's own record. With
// `--upto` the seller charges by the word, and the buyer signs a maximum; with `--batch` the buyer deposits once and
// pays a thousand calls by vouchers. It finds the running facilitator at any port, or with `--state DIR` the
// facilitator of that folder; `FACILITATOR_URL` and `LEDGER_URL` name others.
import { Keypair, Networks, rpc, TransactionBuilder, FeeBumpTransaction } from "@stellar/stellar-sdk"
import { fileURLToPath } from "node:url"
import { buy } from "./buyer.ts"
import { findFacilitator, isReady } from "./findFacilitator.ts"
import { readFlags } from "./readFlags.ts"
import { startSeller } from "./seller-http.ts"
import { startMeteredSeller } from "./seller-metered.ts"

const usdc = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
const amount = 10_000n
/** Timeout for a new account, and for the payment: a ledger that does not answer is reported then. */
const patienceMillis = 120_000
const say = (line = "") => console.log(line)
const short = (name: string) => `${name.slice(0, 6)}…${name.slice(-6)}`
const inUsdc = (units: bigint) => `${units / 10_000_000n}.${String(units % 10_000_000n).padStart(7, "0")} USDC`

const fail = (sentence: string): never => {
  console.error(`pay: ${sentence}`)
  process.exit(1)
}

const usage = `pay [--upto | --batch] [--state DIR]: one payment on the local ledger, explained step by step
  --upto       the seller charges by the word, the buyer signs a maximum
  --batch      a thousand calls from one deposit, by vouchers
  --state DIR  pay through the facilitator over this folder; default the one that runs on this machine
  FACILITATOR_URL and LEDGER_URL name others`
const verified = process.argv[1] !== fileURLToPath(import.meta.url)
const { flags } = readFlags(
  usage,
  { upto: { type: "boolean" }, batch: { type: "boolean" }, state: { type: "string" } },
  { verified }
)
const { batch: isBatch = false, state, upto: isMetered = false } = flags

const named = process.env["FACILITATOR_URL"]
const found =
  named === undefined
    ? await findFacilitator(state)
    : (await isReady(named))
      ? { facilitator: named, ledger: undefined }
      : undefined
const where = named ?? (state === undefined ? "on this machine" : `over ${state}`)
const remedy = 'start one in another terminal with "npm start" (without a checkout "npx tollkeeper start")'
const { facilitator, ledger: own } = found ?? fail(`no facilitator answers ${where}; ${remedy} and try again`)
const ledger = process.env["LEDGER_URL"] ?? own ?? "http://127.0.0.1:8000"

/** A facilitator that cannot store a payment, on a full disk for instance, says so before anyone signs. */
const readiness: any = await fetch(`${facilitator}/health/ready`, { signal: AbortSignal.timeout(patienceMillis) })
  .then((answer) => answer.json())
  .catch(() => ({}))
if (readiness.database?.state === "degraded" && readiness.database.detail !== undefined)
  fail(`the facilitator accepts no payment: ${readiness.database.detail}; then pay again`)

const readAtLedger = `check that the ledger at ${ledger} answers, for instance with "tollkeeper doctor"`

const account = async (units: number): Promise<Keypair> => {
  const keypair = Keypair.random()
  const asked = `${ledger}/friendbot?addr=${keypair.publicKey()}&usdc=${units}`
  const funded = await fetch(asked, { signal: AbortSignal.timeout(patienceMillis) }).catch(() => undefined)
  if (funded?.ok !== true)
    fail(`the ledger at ${ledger} gives no money to new accounts; "npm start" runs a local one that does`)
  return keypair
}

const [buyer, owner] = [await account(1), await account(0)]
if (isBatch) {
  const { payByBatch } = await import("./batch.ts")
  const settled = await payByBatch({ facilitator, ledger, asset: usdc, buyer, seller: owner, say }).catch((error) =>
    fail(`not all calls were paid: ${String(error instanceof Error ? error.message : error).split("\n")[0]}`)
  )
  process.exit(settled ? 0 : 1)
}
const common = { facilitator, payTo: owner.publicKey(), asset: usdc }
const seller = isMetered
  ? await startMeteredSeller({ ...common, max: amount, perWord: 500n })
  : await startSeller({ ...common, amount: String(amount) })
const url = `${seller.url}${isMetered ? "/story?words=7" : "/weather?city=Riga"}`
say(`Seller       ${short(owner.publicKey())} offers ${url}`)
say(`Buyer        ${short(buyer.publicKey())} has ${inUsdc(10_000_000n)}`)
say(`Facilitator  ${facilitator}`)
say(`Ledger       ${ledger}`)

/** The buyer's payment. A failure of the ledger or the seller ends the process with a message. */
const pay = async () => {
  const silence = setTimeout(
    () => fail(`nothing came back within ${patienceMillis / 1000} seconds; ${readAtLedger}`),
    patienceMillis
  )
  try {
    return await buy(url, { secret: buyer.secret(), rpcUrl: ledger, maxAmount: 1_000_000n })
  } catch (error) {
    const isNoLedger = error instanceof TypeError && error.cause === undefined
    const words = isNoLedger ? "what the ledger answered is not Stellar RPC" : String((error as Error).message)
    const [why] = words.split("\n")
    return fail(`the buyer could not pay: ${why}; ${readAtLedger}`)
  } finally {
    clearTimeout(silence)
  }
}

const started = performance.now()
const { paymentPayload, paymentRequired, receipt, response } = await pay()
const milliseconds = Math.round(performance.now() - started)
const page = await response.text()

const offer = paymentRequired.accepts[0]
say()
say("1. The buyer asks for the page: 402 Payment Required")
const atMost = isMetered ? "at most " : ""
const price = `${atMost}${offer.amount} units of ${short(offer.asset)} (${inUsdc(BigInt(offer.amount))})`
const isSponsored = `ledger fees sponsored: ${offer.extra.areFeesSponsored}`
say(`   ${offer.scheme} on ${offer.network}: ${price}`)
say(`   to ${short(offer.payTo)}, good for ${offer.maxTimeoutSeconds} seconds, ${isSponsored}`)
say()
say("2. The buyer signs one authorization and asks again with PAYMENT-SIGNATURE")
const signed = `${isMetered ? "at most the maximum" : "transfer"} ${short(buyer.publicKey())} → ${short(offer.payTo)}`
say(`   ${paymentPayload.payload.transaction.length} characters of transaction: ${signed}`)
say()
say("3. The seller lets the facilitator verify and settle, and answers")
say(`   ${response.status} ${response.ok ? page : response.statusText}`)
say()
say("4. The receipt in PAYMENT-RESPONSE")
if (receipt === undefined) say(`   none: ${JSON.parse(page).error}`)
else {
  const outcome = receipt.success ? "success" : `no success: ${receipt.errorMessage ?? receipt.errorReason}`
  say(`   ${outcome} on ${receipt.network}, paid by ${short(receipt.payer ?? "")}`)
  if (isMetered) say(`   ${receipt.amount} of ${offer.amount} units were used and paid`)
  say(`   transaction ${receipt.transaction}`)
}

if (receipt?.transaction) {
  const server = new rpc.Server(ledger, { allowHttp: true })
  const found = await server.pollTransaction(receipt.transaction, { attempts: 20, sleepStrategy: () => 250 })
  say()
  say("5. The ledger's own record")
  if (found.status === rpc.Api.GetTransactionStatus.NOT_FOUND) say("   not found")
  else {
    const envelope = TransactionBuilder.fromXDR(found.envelopeXdr, Networks.TESTNET)
    const feeSource = envelope instanceof FeeBumpTransaction ? envelope.feeSource : envelope.source
    const fee = `fee of ${found.resultXdr.feeCharged} stroops paid by the sponsor ${short(feeSource)}`
    say(`   ${found.status} in ledger ${found.ledger}, ${fee}`)
  }
}
say()
say(`From the first question to the page: ${milliseconds} ms.`)
await seller.close()
process.exitCode = response.status === 200 && receipt?.success === true ? 0 : 1
