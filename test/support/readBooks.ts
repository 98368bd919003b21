// Reads the claims of a facilitator's database and the ledger's view of the same accounts, as the auditor does.
import { NodeServices } from "@effect/platform-node"
import { Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Claims, readClaims } from "../../kernel/audit/auditRows.ts"
import { readLedger } from "../../kernel/audit/readLedger.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../runtime/platform/nodeHttpCalls.ts"
import type { Facilitator } from "./facilitator.ts"

/** The ledger's side of these claims. */
export const readView = (facilitator: Facilitator, claims: Claims) =>
  readLedger({
    url: facilitator.ledgerUrl,
    passphrase: "Test SDF Network ; September 2015",
    timeout: Duration.seconds(5),
    sinceLedger: 0,
    accounts: new Set([
      ...claims.channels.map(({ address }) => address),
      ...claims.settlements.map(({ sponsor }) => sponsor)
    ])
  })

export const readBooks = (facilitator: Facilitator) =>
  Effect.gen(function* () {
    const claims = yield* readClaims()
    const view = yield* readView(facilitator, claims)
    return { claims, view }
  }).pipe(
    Effect.provideService(SqlClient.SqlClient, facilitator.sql),
    Effect.provide(Layer.mergeAll(NodeServices.layer, NodeCrypto.layer, NodeHttpCalls.layer))
  )
