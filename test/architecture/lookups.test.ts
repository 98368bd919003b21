// Twenty look-ups of a reader new to the code: searching for the obvious word, in any case, in the obvious folder finds
// the implementing file, and few enough others to read through.
import { describe, expect, it } from "vitest"
import { readText, textFiles } from "./sources.ts"

/** Maximum number of files that one search may find, so that a reader can read the list. */
const hitsMax = 45

const lookups = [
  {
    what: "refusal reasons and their statuses",
    word: "refusal reason",
    folder: "kernel/",
    found: "payment/Refusal.ts"
  },
  { what: "how a settlement ends", word: "decide", folder: "kernel/settlement/", found: "state/decide.ts" },
  { what: "a setting's default", word: "default:", folder: "kernel/config/", found: "config/Limits.ts" },
  { what: "migrations", word: "migration", folder: "kernel/", found: "database/Migrations.ts" },
  { what: "the current schema", word: "create table", folder: "migrations/", found: "migrations/schema.sql" },
  { what: "a payment scheme", word: "payment scheme", folder: "kernel/", found: "payment/Scheme.ts" },
  { what: "a plugin", word: "plugin = define", folder: "plugins/", found: "x402-exact/plugin.ts" },
  { what: "an asset", word: "assets: list", folder: "kernel/", found: "config/Network.ts" },
  { what: "crash points", word: "crashpoint", folder: "kernel/", found: "settlement/CrashPoints.ts" },
  { what: "the path of a payment", word: "path of a payment", folder: "", found: "kernel/README.md" },
  { what: "fee bumps", word: "fee bump", folder: "kernel/", found: "follower/rebid.ts" },
  { what: "database retries", word: "retr(y|ied)", folder: "kernel/database/", found: "database/Database.ts" },
  { what: "RPC retries", word: "retr(y|ies)", folder: "kernel/ledger/", found: "ledger/askEndpoints.ts" },
  { what: "a metric", word: "counter\\(", folder: "kernel/", found: "telemetry/metrics.ts" },
  { what: "graceful shutdown", word: "sigterm", folder: "kernel/", found: "payment/Facilitator.ts" },
  { what: "a route", word: "addRoutes", folder: "kernel/", found: "payment/http/Routes.ts" },
  { what: "idempotency", word: "idempoten", folder: "kernel/", found: "settle/existing.ts" },
  { what: "validation", word: "validation", folder: "kernel/", found: "payment/checkEnvelope.ts" },
  { what: "batching", word: "batch", folder: "kernel/", found: "database/batched.ts" },
  { what: "caches", word: "cache", folder: "kernel/", found: "cache/LruCache.ts" },
  { what: "the access log", word: "access log", folder: "kernel/", found: "http/httpMiddleware.ts" },
  { what: "the request id", word: "request id", folder: "kernel/", found: "http/httpMiddleware.ts" }
]

const search = (folder: string, word: string): ReadonlyArray<string> =>
  textFiles.filter(
    (path) => path.startsWith(folder) && !path.startsWith("test/") && new RegExp(word, "i").test(readText(path))
  )

describe("look-ups", () => {
  it.each(lookups)("one search finds $what", ({ folder, found, word }) => {
    const hits = search(folder, word)
    expect(hits.filter((path) => path.endsWith(found))).toHaveLength(1)
    expect(hits.length).toBeLessThanOrEqual(hitsMax)
  })
})
