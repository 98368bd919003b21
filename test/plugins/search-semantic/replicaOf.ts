// Replicas with search by a model over one database: the first has the ledger, the others get its address.
import { Keypair } from "@stellar/stellar-sdk"
import type { Layer } from "effect"
import type { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import type { EmbeddingsEndpoint } from "../../relevance/embeddings.ts"
import { startFacilitator } from "../../support/facilitator.ts"

/** In addition to the ledger's. */
export const plugins = ["x402-exact", "catalog", "search-lexical", "search-semantic"]

export const replicaOf = (database: Layer.Layer<DatabaseSource>, endpoint: EmbeddingsEndpoint) => {
  const environment = { SPONSOR_SECRET: Keypair.random().secret() }
  return (set: ReadonlyArray<string>, ledgerUrl?: string) =>
    startFacilitator({
      database,
      environment,
      closeMillis: 1_000,
      channels: 1,
      ...(ledgerUrl === undefined ? {} : { ledgerUrl }),
      set: [
        `plugins=[${[...(ledgerUrl === undefined ? ["ledger-local"] : []), ...plugins].join(", ")}]`,
        "search.semantic.provider=openai",
        "search.semantic.hybrid_wait_ms=5000",
        `search.semantic.url=${endpoint.url}`,
        "search.semantic.dimension=16",
        "search.semantic.batch_size=4",
        ...set
      ]
    })
}
