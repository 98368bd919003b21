// A resource on the wire: the public body that discovery serves, and its version hash. The hash is the sha256, in
// lower-case hex, of the body's canonical JSON (RFC 8785) without the contract's volatile members. Any client can
// compute it from the body that it received, and it changes exactly when the declaration or an accepted option does
// (S31–S48, S194, S310). Nothing internal is in a body (S113).
import { Hex } from "effect/encoding"
import { encodeNetwork } from "../../../kernel/Dialect.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Terms } from "../../../kernel/payment/Payment.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { cleanJson, measureJson } from "../declaration/cleanText.ts"
import type { Declaration, Description, Identity } from "../declaration/Declaration.ts"
import { lastingOf, type Operation } from "../contract.ts"
import type { Fields } from "../fields.ts"
import { fullAgeDays } from "./weighEvidence.ts"

/** The stored part of a resource's declarations; the shape of `catalog_resources.declaration`. */
export interface StoredBody {
  readonly about: Description
  /** By method, sorted. */
  readonly operations: ReadonlyArray<Operation>
  readonly sentKey: string
  readonly extensions: ReadonlyArray<string>
}

export interface StoredOption {
  /** HTTP method; empty for MCP. */
  readonly operation: string
  /** As the seller declared it. */
  readonly option: Fields
}

const extraLengthMax = 2_048

/** An option as the seller declared it, in its own spelling. */
export const encodeOption = (declaration: Pick<Declaration, "terms" | "dialect">): Fields => {
  const { amountText, asset, extra, maxTimeoutSeconds, network, payTo, scheme }: Terms = declaration.terms
  const measured = measureJson(extra, 8, 200)
  const usable = !measured.tooDeep && !measured.tooMany && JSON.stringify(extra).length <= extraLengthMax
  const reported = usable
    ? (cleanJson(extra) as Fields)
    : typeof extra["areFeesSponsored"] === "boolean"
      ? { areFeesSponsored: extra["areFeesSponsored"] }
      : {}
  return {
    scheme,
    network: encodeNetwork(network, declaration.dialect),
    asset,
    amount: amountText,
    payTo,
    maxTimeoutSeconds,
    ...(Object.keys(reported).length === 0 ? {} : { extra: reported })
  }
}

const sortedOptions = (options: ReadonlyArray<StoredOption>): ReadonlyArray<Fields> => {
  const byText = new Map(options.map(({ option }) => [canonicalJson(option), option]))
  const order = (option: Fields) => ["scheme", "network", "asset", "payTo"].map((key) => String(option[key])).join(" ")
  return [...byText]
    .sort(([a, x], [b, y]) => (order(x) < order(y) ? -1 : order(x) > order(y) ? 1 : a < b ? -1 : 1))
    .map(([, option]) => option)
}

const declared = (kept: StoredBody, operation: Operation): Fields => ({
  info: operation.info,
  ...(operation.schema === undefined ? {} : { schema: operation.schema }),
  ...(kept.about.routeTemplate === undefined ? {} : { routeTemplate: kept.about.routeTemplate })
})

/** The public body without its volatile members. */
export const encodeBody = (identity: Identity, kept: StoredBody, options: ReadonlyArray<StoredOption>): Fields => {
  const [first] = kept.operations
  const others = kept.extensions.filter((key) => key !== "catalog").map((key) => [key, {}])
  return {
    resource: identity.resource,
    type: identity.type,
    x402Version: 2,
    ...(identity.type === "mcp" ? { toolName: identity.toolName } : {}),
    accepts: sortedOptions(options),
    ...kept.about,
    extensions: {
      ...(first === undefined ? {} : { [kept.sentKey]: declared(kept, first) }),
      ...Object.fromEntries(others)
    },
    ...(identity.type === "mcp"
      ? {}
      : {
          operations: kept.operations.map((operation) => ({
            method: operation.method,
            accepts: sortedOptions(options.filter((option) => option.operation === operation.method)),
            info: operation.info
          }))
        })
  }
}

/** The version hash of a public body, whole or without its volatile members. */
export const versionHash = (crypto: Crypto["Service"], body: Fields): string => hashOf(crypto, lastingOf(body))

const isoTime = (column: string): string => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** For `catalog_resources r`: its only evidence is payments, and they risked too little, too recently. */
export const youngText = `(r.established_at is null and r.standing_at > now() - interval '${fullAgeDays} days')`

/** The weight of the evidence of `catalog_resources r`. */
export const weightText = `(case when r.standing_at is null then 'none' when ${youngText} then 'young'
  else 'established' end)`

/**
 * The volatile members of a body as PostgreSQL writes them, over `catalog_resources r` and its `catalog_activity a` if
 * it has one: a page of bodies is twenty texts then, and not twelve times as many values that this process would read
 * and write again. Null members are left out: no payment, no price but the first, no probe. Settlements and payers are
 * those of thirty days that count for rank; `evidence` shows the source of the words and the recipient; `uptime` is the
 * share of thirty days' probes that found it alive. None of the words needs to be escaped: they are of closed sets.
 */
export const volatileText = `concat('"lastUpdated":"', ${isoTime("r.updated_at")},
  '","status":"', r.state, '","verification":"', r.verification, '","ownership":"', r.ownership,
  '","grade":"', r.grade, '","settlements":', coalesce(a.recent_settled, 0), ',"payers":', coalesce(a.recent_payers, 0),
  ',"lastSettledAt":"' || ${isoTime("a.last_settled_at")} || '"',
  ',"priceChangedAt":"' || ${isoTime("r.price_changed_at")} || '"',
  ',"lastLookAt":"' || ${isoTime("r.last_look_at")} || '"',
  ',"uptime":' || trim_scale(round(r.uptime::numeric, 4)),
  ',"evidence":{"words":"', case when r.grade = 'claimed' and r.standing_at is not null then 'paid' else r.grade end,
  '","recipient":"', case when r.ownership = 'proven' then 'origin' when r.grade <> 'claimed' then r.grade
    when r.standing_at is not null then 'paid' else 'claimed' end,
  '","weight":"', ${weightText},
  '"},"versionHash":"', r.version_hash, '"}')`

/** The served body: the stored text followed by its volatile members. Listed bodies only come as active or stale. */
export const serveBody = (document: string, volatile: string): string => `${document.slice(0, -1)},${volatile}`

const hashOf = (crypto: Crypto["Service"], value: unknown): string =>
  Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson(value))))

/** The key of all records on one URL: sha256 hex. */
export const resourceKey = (crypto: Crypto["Service"], resource: string): string => hashOf(crypto, resource)

/**
 * `/users/:id` and `/users/:name` match the same paths: a declaration with another parameter name does not get a second
 * listing.
 */
const withoutNames = (resource: string): string => resource.replace(/\/:[A-Za-z_]\w*(?=\/|$)/g, "/:")

/** The key of an identity: sha256 hex. */
export const identityKey = (
  crypto: Crypto["Service"],
  { resource, toolName, type }: Pick<Identity, "type" | "resource" | "toolName">
): string => hashOf(crypto, [type, type === "http" ? withoutNames(resource) : resource, toolName])
