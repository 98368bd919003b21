// A buyer: requests a page, reads the terms of the 402, signs one authorization, and requests again. It builds and
// signs the single call `transfer(buyer, seller, amount)` of a known asset, with an expiry from the terms. The
// facilitator pays the ledger's fee, so the buyer needs only the asset. It refuses terms above its own limit before it
// signs. If a seller charges for usage (`upto`), the buyer signs a maximum, by `upto.ts`.
//
//   BUYER_SECRET=S… node examples/buyer.ts http://127.0.0.1:…/weather
import { fileURLToPath } from "node:url"
import {
  Account,
  Address,
  authorizeEntry,
  Keypair,
  nativeToScVal,
  Networks,
  Operation,
  rpc,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import {
  ask,
  decode,
  echoed,
  encode,
  isSpent,
  keptOf,
  keyOf,
  type Call,
  filePayments,
  type Kept,
  memoryPayments,
  type Payments,
  paymentsFolder,
  PaymentUnknown,
  readKept,
  requestOf,
  requiredBy,
  sendKept
} from "./client/keptPayments.mjs"
import { ledgersOf, type Limit, limitOf, usualAssets } from "./client/preparedBytes.mjs"
import { UptoStellarClient } from "./upto.ts"

export interface BuyerOptions extends Call {
  readonly secret: string
  /** A ledger RPC to simulate with. */
  readonly rpcUrl: string
  /** Maximum of one request, atomic units, by asset; a plain number is in units of the first of `assets`. */
  readonly maxAmount: Limit
  /** Contracts of the assets to pay in, which give a limit its units. Default USDC and XLM of the network. */
  readonly assets?: ReadonlyArray<string>
  /** Default `ledger:testnet` and its passphrase. */
  readonly network?: string
  readonly networkPassphrase?: string
  /** Store of signed payments, written before they are sent. Default in memory. */
  readonly payments?: Payments
  /** Gets the page before its payment is forgotten; if it throws, the same call gets the page again. */
  readonly receive?: (purchase: Purchase) => unknown
}

export interface Purchase {
  /** The page, paid or not. */
  readonly response: Response
  /** The offered terms, if the page was not free. */
  readonly paymentRequired?: any
  /** The signed payload that was sent. */
  readonly paymentPayload?: any
  /** The settlement's receipt, when the seller sent one. */
  readonly receipt?: any
}

/** Placeholder source account until the facilitator replaces it with a leased channel. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

/** The schemes that this buyer can sign for. */
const schemes = new Set(["exact", "upto"])

const ownPayments = memoryPayments()
const payerOf = ({ secret }: BuyerOptions) => Keypair.fromSecret(secret).publicKey()
const serverOf = ({ rpcUrl }: BuyerOptions) =>
  new rpc.Server(rpcUrl, { allowHttp: new URL(rpcUrl).protocol === "http:" })

/** Sends a kept payment until its answer is known; throws `PaymentUnknown`, with the payment, if it stays unknown. */
const deliver = async (key: string, kept: Kept, { payments = ownPayments, receive }: BuyerOptions) => {
  const { reason, receipt, response } = await sendKept(kept)
  const more = receipt === undefined ? {} : { receipt }
  const purchase = { reason, response, paymentPayload: decode(kept.payment), ...more }
  if (!response.ok) return purchase
  await receive?.(purchase)
  await payments.remove(key, kept)
  return purchase
}

/** Sends a kept payment again. */
export const resume = (kept: Kept, options: BuyerOptions): Promise<Purchase> => {
  const { headers, method, url } = kept
  const body = kept.body === undefined ? {} : { body: Buffer.from(kept.body, "base64") }
  return deliver(keyOf(payerOf(options), { method, url, headers, ...body }), kept, options)
}

/**
 * Signs within the buyer's limit, and stores the payment. Refuses while an `earlier` payment of the same request can
 * land.
 */
const signAndKeep = async (key: string, url: string, required: any, options: BuyerOptions, earlier?: Kept) => {
  const { payments = ownPayments, network = "ledger:testnet" } = options
  const accepted = required?.accepts?.find((option: any) => {
    if (!schemes.has(option.scheme) || option.network !== network) return false
    return BigInt(option.amount) <= (limitOf(option.asset, network, options) ?? -1n)
  })
  if (accepted === undefined) throw new Error(`${url} asks for nothing that this buyer would pay on ${network}`)
  const server = serverOf(options)
  const after = earlier?.expires ?? 0
  if ((await server.getLatestLedger()).sequence <= after)
    throw new Error(`an earlier payment can land until ledger ${after}; send that one again`)
  const payload =
    accepted.scheme === "upto"
      ? (await new UptoStellarClient({ ...options, assets: [accepted.asset] }).createPaymentPayload(2, accepted))
          .payload
      : { transaction: await signPayment(accepted, { ...options, assets: [accepted.asset] }) }
  const extensions = echoed(required.extensions)
  const { resource } = required
  const payment = encode({ x402Version: 2, payload, resource, accepted, ...(extensions && { extensions }) })
  const expires = (await server.getLatestLedger()).sequence + ledgersOf(accepted.maxTimeoutSeconds)
  if (earlier !== undefined) await payments.remove(key, earlier)
  return payments.putIfAbsent(key, keptOf(requestOf(url, options), payment, { expires }))
}

/**
 * Requests `url`, paying on a 402 within the buyer's limit. The payment is stored before it is sent, and the next
 * identical call sends a stored one again. Rejects if no offered option suits the buyer.
 */
export const buy = async (url: string, options: BuyerOptions): Promise<Purchase> => {
  const { payments = ownPayments } = options
  const request = requestOf(url, options)
  const key = keyOf(payerOf(options), request)
  const earlier = await payments.get(key)
  const again = earlier === undefined ? undefined : await deliver(key, earlier, options)
  if (again !== undefined && (again.response.ok || isSpent(again.reason))) return again
  const unpaid = await ask(request)
  if (unpaid.status !== 402) return { response: unpaid }
  const paymentRequired = await requiredBy(unpaid)
  const kept = await signAndKeep(key, url, paymentRequired, options, earlier)
  return { paymentRequired, ...(await deliver(key, kept, options)) }
}

/** The transaction of a payment: one transfer, authorized by the buyer, in an unsigned envelope. */
export const signPayment = async (accepted: any, options: BuyerOptions): Promise<string> => {
  if (!(options.assets ?? usualAssets(options.network ?? "ledger:testnet")).includes(accepted.asset))
    throw new Error(`${accepted.asset} is not an asset that this buyer pays in`)
  const buyer = Keypair.fromSecret(options.secret)
  const networkPassphrase = options.networkPassphrase ?? Networks.TESTNET
  const server = serverOf(options)
  const transfer = new xdr.InvokeContractArgs({
    contractAddress: new Address(accepted.asset).toScAddress(),
    functionName: "transfer",
    args: [
      new Address(buyer.publicKey()).toScVal(),
      new Address(accepted.payTo).toScVal(),
      nativeToScVal(BigInt(accepted.amount), { type: "i128" })
    ]
  })
  const lifetime = ledgersOf(accepted.maxTimeoutSeconds)
  const { sequence } = await server.getLatestLedger()
  const expirationLedger = sequence + lifetime
  // We do not simulate to learn the authorization: a seller's own contract as the asset could ask for more than its
  // transfer. Every facilitator reads this older form of credentials.
  const unsigned = new xdr.SorobanAuthorizationEntry({
    rootInvocation: new xdr.SorobanAuthorizedInvocation({
      function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(transfer),
      subInvocations: []
    }),
    credentials: xdr.SorobanCredentials.sorobanCredentialsAddress(
      new xdr.SorobanAddressCredentials({
        address: new Address(buyer.publicKey()).toScAddress(),
        nonce: new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0),
        signatureExpirationLedger: expirationLedger,
        signature: xdr.ScVal.scvVoid()
      })
    )
  })
  const entry = await authorizeEntry(unsigned, buyer, expirationLedger, networkPassphrase)

  // A simulation, with the signature in place, must succeed and returns the call's resources.
  const func = xdr.HostFunction.hostFunctionTypeInvokeContract(transfer)
  const signed = new TransactionBuilder(new Account(nullAccount, "0"), { fee: "100", networkPassphrase })
    .addOperation(Operation.invokeHostFunction({ func, auth: [entry] }))
    .setTimeout(300)
    .build()
  const enforced = await server.simulateTransaction(signed)
  if (!rpc.Api.isSimulationSuccess(enforced)) throw new Error(`the ledger refuses the payment: ${reasonOf(enforced)}`)
  return rpc.assembleTransaction(signed, enforced).build().toXDR()
}

const reasonOf = (simulation: rpc.Api.SimulateTransactionResponse): string =>
  rpc.Api.isSimulationError(simulation) ? simulation.error.split("\n")[0]! : "something has to be restored first"

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [word, file] = process.argv.slice(2)
  const secret = process.env["BUYER_SECRET"]
  if (word === undefined || secret === undefined) throw new Error("set BUYER_SECRET and name a URL")
  const rpcUrl = process.env["LEDGER_RPC_URL"] ?? "http://127.0.0.1:8000"
  const network = process.env["NETWORK"] ?? "ledger:testnet"
  const payments = filePayments(paymentsFolder())
  try {
    const options = { secret, rpcUrl, network, maxAmount: 1_000_000n, payments }
    const { receipt, response } = await (word === "--resume" && file !== undefined
      ? readKept(file).then((kept) => resume(kept, options))
      : buy(word, options))
    console.log(response.status, await response.text())
    if (receipt !== undefined) console.log(receipt)
    process.exitCode = response.ok ? 0 : 1
  } catch (error) {
    if (!(error instanceof PaymentUnknown)) throw error
    console.error(`${error.message}\npayment: ${error.kept.payment}\nresume:  buyer.ts --resume ${error.kept.file}`)
    process.exitCode = 1
  }
}
