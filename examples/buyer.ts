// A buyer: requests a page, reads the terms of the 402, signs one authorization, and requests again. It signs the
// single call `transfer(buyer, seller, amount)` of an asset that it knows, with an expiry that the terms set, and it
// builds what it signs; the facilitator pays the ledger's fee, so that the buyer needs the asset and nothing else. It
// refuses terms above its own limit before it signs. Where a seller charges for usage (`upto`), the buyer signs a
// maximum, by `upto.ts`.
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
import { ledgersOf, usualAssets } from "./preparedBytes.mjs"
import { UptoStellarClient } from "./upto.ts"

export interface BuyerOptions {
  readonly secret: string
  /** A ledger RPC to simulate with. */
  readonly rpcUrl: string
  /** The most this buyer pays for one request, in atomic units of the asset. */
  readonly maxAmount: bigint
  /** Contracts of the assets to pay in: what a limit is in units of. Default USDC and XLM of the network. */
  readonly assets?: ReadonlyArray<string>
  /** Default `ledger:testnet` and its passphrase. */
  readonly network?: string
  readonly networkPassphrase?: string
}

export interface Purchase {
  /** The page, paid or not. */
  readonly response: Response
  /** The terms that were offered, when the page was not free. */
  readonly paymentRequired?: any
  /** What was signed and sent. */
  readonly paymentPayload?: any
  /** The settlement's receipt, when the seller sent one. */
  readonly receipt?: any
}

/** Placeholder source account until the facilitator replaces it with a leased channel. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

/** The schemes that this buyer can sign for. */
const schemes = new Set(["exact", "upto"])

/** Gets `url`, paying on a 402 within the buyer's limit. Rejects when no offered option suits the buyer. */
export const buy = async (url: string, options: BuyerOptions): Promise<Purchase> => {
  const unpaid = await fetch(url)
  if (unpaid.status !== 402) return { response: unpaid }
  const paymentRequired: any = await unpaid.json()
  const network = options.network ?? "ledger:testnet"
  const assets = options.assets ?? usualAssets(network)
  const accepted = paymentRequired.accepts.find(
    (option: any) =>
      schemes.has(option.scheme) &&
      option.network === network &&
      assets.includes(option.asset) &&
      BigInt(option.amount) <= options.maxAmount
  )
  if (accepted === undefined) throw new Error(`${url} asks for nothing that this buyer would pay on ${network}`)

  const payload =
    accepted.scheme === "upto"
      ? (await new UptoStellarClient(options).createPaymentPayload(2, accepted)).payload
      : { transaction: await signPayment(accepted, options) }
  const paymentPayload = {
    x402Version: 2,
    payload,
    resource: paymentRequired.resource,
    accepted,
    ...(paymentRequired.extensions === undefined ? {} : { extensions: paymentRequired.extensions })
  }
  const response = await fetch(url, { headers: { "payment-signature": encode(paymentPayload) } })
  const header = response.headers.get("payment-response")
  return { response, paymentRequired, paymentPayload, ...(header === null ? {} : { receipt: decode(header) }) }
}

/** The transaction of a payment: one transfer, authorized by the buyer, in an unsigned envelope. */
export const signPayment = async (accepted: any, options: BuyerOptions): Promise<string> => {
  if (!(options.assets ?? usualAssets(options.network ?? "ledger:testnet")).includes(accepted.asset))
    throw new Error(`${accepted.asset} is not an asset that this buyer pays in`)
  const buyer = Keypair.fromSecret(options.secret)
  const networkPassphrase = options.networkPassphrase ?? Networks.TESTNET
  const server = new rpc.Server(options.rpcUrl, { allowHttp: new URL(options.rpcUrl).protocol === "http:" })
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
  // No simulation is asked what to authorize: a seller's own contract as the asset would answer with more than its
  // transfer. The older form of credentials is one that every facilitator reads.
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

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")

const decode = (header: string): any => JSON.parse(Buffer.from(header, "base64").toString("utf8"))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const url = process.argv[2]
  const secret = process.env["BUYER_SECRET"]
  if (url === undefined || secret === undefined) throw new Error("set BUYER_SECRET and name a URL")
  const rpcUrl = process.env["LEDGER_RPC_URL"] ?? "http://127.0.0.1:8000"
  const network = process.env["NETWORK"] ?? "ledger:testnet"
  const { receipt, response } = await buy(url, { secret, rpcUrl, network, maxAmount: 1_000_000n })
  console.log(response.status, await response.text())
  if (receipt !== undefined) console.log(receipt)
}
