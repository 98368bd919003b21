// The official client of the Machine Payments Protocol with a method for Stellar's charge: `@stellar/mpp` if
// STELLAR_MPP names its client module, because the registry does not have it; else the method below, which follows the
// published draft.
import * as stellar from "@stellar/stellar-sdk"
import { Credential, Method, z } from "mppx"
import { Mppx } from "mppx/client"

const { Account, Address, authorizeEntry, Contract, nativeToScVal, Networks, rpc, TransactionBuilder } = stellar
const zeros = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
const secondsPerLedger = 5

const schema = {
  credential: { payload: z.object({ type: z.literal("transaction"), transaction: z.string() }) },
  request: z.object({
    amount: z.string(),
    currency: z.string(),
    recipient: z.string(),
    description: z.optional(z.string()),
    methodDetails: z.object({ network: z.string(), feePayer: z.boolean() })
  })
}

/** The transfer with signed authorizations and the zero account as source: the server pays the fee. */
const charge = ({ keypair, rpcUrl }) =>
  Method.toClient(Method.from({ name: "stellar", intent: "charge", schema }), {
    createCredential: async ({ challenge }) => {
      const { amount, currency, methodDetails, recipient } = challenge.request
      if (!methodDetails.feePayer) throw new Error("this buyer only signs authorizations")
      const node = new rpc.Server(rpcUrl, { allowHttp: true })
      const [from, to] = [keypair.publicKey(), recipient].map((one) => new Address(one).toScVal())
      const expires = Date.parse(challenge.expires)
      const call = new Contract(currency).call("transfer", from, to, nativeToScVal(BigInt(amount), { type: "i128" }))
      const draft = new TransactionBuilder(new Account(zeros, "0"), { fee: "100", networkPassphrase: Networks.TESTNET })
        .addOperation(call)
        .setTimebounds(0, Math.floor(expires / 1_000))
        .build()
      const { sequence } = await node.getLatestLedger()
      const until = sequence + Math.ceil((expires - Date.now()) / 1_000 / secondsPerLedger)
      const recorded = await node.simulateTransaction(draft)
      const entries = recorded.result?.auth ?? []
      const auth = await Promise.all(entries.map((one) => authorizeEntry(one, keypair, until, draft.networkPassphrase)))
      const operation = rpc.assembleTransaction(draft, { ...recorded, result: { ...recorded.result, auth } })
      const transaction = operation.build().toXDR()
      const source = `did:pkh:${methodDetails.network}:${keypair.publicKey()}`
      return Credential.serialize({ challenge, payload: { type: "transaction", transaction }, source })
    }
  })

/** The method's name, and a fetch that pays. */
export const makeBuyer = async ({ keypair, rpcUrl }) => {
  const official = process.env["STELLAR_MPP"]
  const method =
    official === undefined
      ? charge({ keypair, rpcUrl })
      : (await import(official)).charge({ secretKey: keypair.secret(), rpcUrl })
  return Mppx.create({ methods: [method], polyfill: false })
}
