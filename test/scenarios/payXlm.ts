// A payment of XLM between ordinary accounts: built, signed, sent, and its result. It does not use the facilitator.
import { Account, Asset, type Keypair, Networks, Operation, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import { awaitTransaction, type RpcCall } from "../../runtime/redteam/rpcCall.ts"

const sequenceOf = async (rpc: RpcCall, source: Keypair): Promise<string> => {
  const accountId = xdr.PublicKey.publicKeyTypeEd25519(source.rawPublicKey())
  const key = xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId }))
  const { entries } = await rpc("getLedgerEntries", { keys: [key.toXdr("base64")] })
  const data = xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64")
  if (data.type !== "account") throw new Error(`the ledger answered a ${data.type} for an account`)
  return String(data.account.seqNum)
}

/** The hash of the landed transaction, and whether it succeeded. */
export const payXlm = async (rpc: RpcCall, from: Keypair, to: string, stroops: bigint) => {
  const account = new Account(from.publicKey(), await sequenceOf(rpc, from))
  const whole = stroops / 10_000_000n
  const amount = `${whole}.${String(stroops % 10_000_000n).padStart(7, "0")}`
  const transaction = new TransactionBuilder(account, { fee: "1000", networkPassphrase: Networks.TESTNET })
    .addOperation(Operation.payment({ destination: to, asset: Asset.native(), amount }))
    .setTimeout(60)
    .build()
  transaction.sign(from)
  const sent = await rpc("sendTransaction", { transaction: transaction.toEnvelope().toXDR("base64") })
  if (sent.status !== "PENDING") throw new Error(`the payment of ${stroops} stroops: ${JSON.stringify(sent)}`)
  const { status } = await awaitTransaction(rpc, sent.hash, 60_000)
  return { hash: sent.hash as string, hasSucceeded: status === "SUCCESS" }
}
