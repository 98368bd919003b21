// Secrets for a facilitator that signs receipts.
import { Keypair } from "@stellar/stellar-sdk"

export const receiptSecrets = {
  SPONSOR_SECRET: Keypair.random().secret(),
  RECEIPTS_SECRET: Keypair.random().secret()
}
