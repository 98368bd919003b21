// The catalog's settings: which declarations are indexed and when, how large they may be, which origins are accepted,
// what discovery shows, and how often origins are probed. The names are the specification's (S286–S295).
import { Context, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { networkSecuritySection } from "../../kernel/config/NetworkSecurity.ts"
import { choice, flag, integer, list, type MembersOf, membersOf, section, table } from "../../kernel/config/Setting.ts"
import { Settings, SettingsRefused } from "../../kernel/config/Settings.ts"

const indexing = section("indexing", "Which declarations become listings.", {
  auto_catalog: flag({ default: true, doc: "List what payments declare; if off, payments do not change the catalog." }),
  index_on: choice(["verified", "settled"], {
    default: "verified",
    doc: "Which payment makes a declaration listable; with settled, a " + "verified one is unverified until then."
  }),
  require_valid_schema: flag({
    default: true,
    doc: "Refuse a declaration without a schema, or whose info does not match it."
  }),
  stale_after_hours: integer(
    { default: 168, min: 1, max: 87_600, unit: "hours" },
    "A resource not seen for this long is stale."
  ),
  max_metadata_bytes: integer(
    { default: 131_072, min: 1_024, max: 1_048_576, unit: "bytes" },
    "Maximum size of declared metadata as JSON."
  ),
  max_schema_bytes: integer(
    { default: 65_536, min: 256, max: 1_048_576, unit: "bytes" },
    "Maximum size of one declared schema as JSON."
  ),
  max_example_bytes: integer(
    { default: 16_384, min: 256, max: 1_048_576, unit: "bytes" },
    "Maximum size of one declared example as JSON; a longer output example is left out."
  ),
  max_new_resources_per_day: integer(
    { default: 2_000, min: 1, max: 10_000_000 },
    "First listings per UTC day that payments may claim of one origin, verified and settled ones apart, and that " +
      "one owner may declare; one payer may begin an eighth of them."
  ),
  max_free_listings_per_hour: integer(
    { default: 20, min: 1, max: 10_000_000 },
    "First listings of one payer in an hour by payments that are only verified, of any " +
      "origins and recipients they " +
      "name; beyond it the origin is asked."
  ),
  max_declared_bytes_per_day: integer(
    { default: 67_108_864, min: 65_536, max: 1_099_511_627_776, unit: "bytes" },
    "Listings and versions per UTC day, as JSON, that payments may claim of one origin, verified and settled ones " +
      "apart, and that one owner may declare; one payer may claim an eighth of them."
  ),
  max_versions_per_day: integer({ default: 100, min: 1, max: 1_000_000 }, "New versions of one resource per UTC day.")
})

const discovery = section(
  "discovery",
  "Which resources the public routes show.",
  {
    include_stale: flag({ default: false, doc: "Show resources that have gone stale." }),
    include_unverified: flag({
      default: false,
      doc: "Show resources without an observed payment of the kind in indexing.index_on."
    }),
    cursor_minutes: integer(
      { default: 15, min: 1, max: 1_440, unit: "minutes" },
      "Maximum life of a cursor; it lives at least two thirds of this."
    )
  },
  ({ include_unverified }) => (include_unverified ? ["discovery.include_unverified must be false"] : [])
)

const security = section(
  "catalog_security",
  "Which origins may be listed.",
  {
    require_https_origins: flag({ default: true, doc: "Refuse plain-HTTP resources." }),
    allow_local_origins: flag({
      default: false,
      doc: "Accept loopback, private and other local origins, and connect to them to probe their owner."
    }),
    recipients: table(Schema.Array(Schema.String), {
      default: {},
      doc:
        "Recipients (payTo) that the holder of a key answers for, by the key's label: what is paid to them under " +
        "that key is declared, not claimed. Others show it themselves by POST /catalog/v1/challenge."
    }),
    foreign_catalogs: list(Schema.String, {
      default: [],
      doc:
        "Other catalogs in the format of /discovery/resources, read hourly: we probe the origins that they name, " +
        "ten an hour for each catalog. A catalog's own claims about a resource are never listed."
    }),
    probe_origins: flag({
      default: true,
      doc: "Ask origins for the owner of a resource: /.well-known/x402, then the live 402 of a declared GET or HEAD."
    }),
    probe_pause_seconds: integer(
      { default: 60, min: 0, max: 86_400, unit: "seconds" },
      "Minimum time between two probes of one resource, and between two requests for one origin's document."
    ),
    canary_urls: list(Schema.String.check(Schema.isPattern(/^https?:\/\/[^\s/@]+(\/\S*)?$/)), {
      default: ["https://stellar.org/"],
      doc:
        "Asked (HEAD) before an origin that cannot be reached counts as gone: only while one of " +
        "them, or another origin, " +
        "answers. Empty: another origin alone."
    }),
    free_bytes_max: integer(
      { default: 4_294_967_296, min: 1, max: 1_099_511_627_776, unit: "bytes" },
      "Size of the catalog's tables from which on only what was paid for is listed and kept."
    )
  },
  ({ allow_local_origins, require_https_origins }) => [
    ...(require_https_origins ? [] : ["catalog_security.require_https_origins must be true"]),
    ...(allow_local_origins ? ["catalog_security.allow_local_origins must be false"] : [])
  ]
)

export interface CatalogValues
  extends MembersOf<typeof indexing>, MembersOf<typeof discovery>, MembersOf<typeof security> {
  /** Connectable endpoint by symbolic `mcp://` identifier. */
  readonly resolvedMcpEndpoints: Readonly<Record<string, string>>
  /** First signs, all open: the value of FACILITATOR_CURSOR_SECRET, comma separated during a rotation. */
  readonly cursorSecret: Option.Option<Redacted.Redacted>
}

/**
 * Maximum bytes of a listing's stored public body, of all its operations together: the routes declare their costs for
 * it. The largest declaration has its example twice in it.
 */
export const documentBytesMax = ({ metadataBytesMax }: Pick<CatalogValues, "metadataBytesMax">): number =>
  Math.floor((23 * metadataBytesMax) / 16)

/** Settled payments below this amount do not count for rank, in atomic units. */
export const dustBelow = 100

export const declared = [indexing, discovery, security]

export class Config extends Context.Service<Config, CatalogValues>()("tollkeeper/catalog/Config") {
  static readonly layer = Layer.effect(
    Config,
    Effect.gen(function* () {
      const settings = yield* Settings
      const { resolved_mcp_endpoints: resolved } = yield* settings.section(networkSecuritySection)
      for (const [name, endpoint] of Object.entries(resolved)) {
        if (!name.startsWith("mcp://") || !URL.canParse(endpoint) || !/^https?:/.test(endpoint)) {
          return yield* new SettingsRefused({
            path: "network_security.resolved_mcp_endpoints",
            message: "an mcp:// identifier and an http(s) URL are required"
          })
        }
      }
      return Config.of({
        ...membersOf(yield* settings.section(indexing)),
        ...membersOf(yield* settings.section(discovery)),
        ...membersOf(yield* settings.section(security)),
        resolvedMcpEndpoints: resolved,
        cursorSecret: settings.secret("FACILITATOR_CURSOR_SECRET")
      })
    })
  )
}
