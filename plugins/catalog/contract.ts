// The catalog's contract for other plugins: documents to index, a fact in the journal for each change, the conditions
// of discovery as SQL, signed cursors, public bodies in a given order, and the registry of search branches. The catalog
// itself ranks nothing; `/discovery/search` is its route, and the registered branches answer it.
import { Context, type Effect, Option, Schema, type Scope } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { contract } from "../../kernel/contract/Contract.ts"
import type { NeutralNetwork } from "../../kernel/Dialect.ts"
import type { Fact } from "../../kernel/facts/Facts.ts"
import { TransactionHash } from "../../kernel/settlement/store/facts.ts"
import type { RecordFilter } from "./administration/RecordFilter.ts"
import type { SimilarTerm, SimilarTerms } from "./search/rank/SimilarTerms.ts"
import type { BranchStatus } from "./search/BranchStatus.ts"
import type { Hit, Matcher } from "./search/Hit.ts"
import type { SearchValues } from "./search/searchSection.ts"
export type { SimilarTerm as AlikeWord } from "./search/rank/SimilarTerms.ts"
export type { BranchStatus, GenerationStatus } from "./search/BranchStatus.ts"
export { confidentRelevance, type Hit, type Matched, type Span } from "./search/Hit.ts"
export { makeValidator } from "./declaration/validateInfo.ts"
export { mirroredHeaders, offersStateless, statelessRevision, withEnvelope } from "./ownership/StatelessRevision.ts"
export type { RecordFilter } from "./administration/RecordFilter.ts"

export type ResourceType = "http" | "mcp"
export type ResourceState = "active" | "stale" | "quarantined" | "removed"

/**
 * Published in the transaction of every change: a first listing, a new version, a change of state or owner; `subject`
 * is the resource's id. Consume with `Facts.consume`, then read `Catalog.documents`: the fact itself is empty.
 */
export const changedFact = "catalog.changed"

const resourceId = /^[1-9][0-9]{0,17}$/

/** The distinct resources that a batch of facts reports as changed. */
export const changedResources = (facts: ReadonlyArray<Fact>): ReadonlyArray<bigint> => [
  ...new Set(
    facts.flatMap(({ subject, type }) => (type === changedFact && resourceId.test(subject) ? [BigInt(subject)] : []))
  )
]

/**
 * Published when settled payments were counted for resources, after their settlements' own facts. A payment may be
 * reported twice, and always for the same resource.
 */
export const soldFact = "catalog.sold"

export const Sold = Schema.Struct({
  sales: Schema.Array(
    Schema.Struct({
      transaction: TransactionHash,
      resourceId: Schema.String.check(Schema.isPattern(resourceId)),
      origin: Schema.NullOr(Schema.String)
    })
  )
})
export type Sold = typeof Sold.Type

const sold = Schema.decodeUnknownOption(Sold)

/** The data of a `soldFact`; None when it cannot be read. */
export const readSold = ({ data, version }: Fact): Option.Option<Sold> => (version === 1 ? sold(data) : Option.none())

export interface PaymentOption {
  readonly scheme: string
  readonly network: NeutralNetwork
  readonly asset: string
  /** Atomic units of `asset`. */
  readonly amount: bigint
  readonly payTo: string
}

/** One method of an HTTP resource, or the single tool of an MCP resource. Every text in it is untrusted. */
export interface Operation {
  /** HTTP method; empty for MCP. */
  readonly method: string
  /** The declared `input` and, if any, `output`. */
  readonly info: Readonly<Record<string, unknown>>
  /** JSON Schema of `info`, when one was declared. */
  readonly schema: Readonly<Record<string, unknown>> | undefined
}

/**
 * Members of a public resource that are not declared text and are excluded from its version hash. The hash is the
 * sha256, in lower-case hex, of the public resource's canonical JSON without these members.
 */
export const volatileMembers: ReadonlyArray<string> =
  `lastUpdated status verification ownership grade settlements payers lastSettledAt priceChangedAt lastLookAt uptime
  evidence versionHash`.split(/\s+/)

/** The part of a public resource that its version hash covers. */
export const lastingOf = (resource: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(resource).filter(([key]) => !volatileMembers.includes(key)))

export interface ResourceDocument {
  readonly id: bigint
  readonly type: ResourceType
  readonly resource: string
  /** Empty for HTTP. */
  readonly toolName: string
  readonly origin: Option.Option<string>
  readonly description: string
  readonly serviceName: string
  readonly tags: ReadonlyArray<string>
  readonly operations: ReadonlyArray<Operation>
  readonly options: ReadonlyArray<PaymentOption>
  readonly state: ResourceState
  readonly version: number
  readonly versionHash: string
  readonly firstSeenAt: Date
  readonly updatedAt: Date
  readonly lastSeenAt: Date
  /** Settled payments and their distinct payers; verified ones do not count. */
  readonly settled: bigint
  readonly payers: bigint
}

/** The structured filters of discovery, decoded: networks and extension names neutral (S107, S118). */
export interface Filters {
  readonly type?: ResourceType
  readonly network?: NeutralNetwork
  readonly scheme?: string
  readonly payTo?: string
  readonly asset?: string
  readonly extension?: string
  /** Atomic units of `asset`; never without it. */
  readonly maxPrice?: bigint
  /** Only resources that have evidence, are established, or (internal) have had either since before this time. */
  readonly evidence?: "any" | "established" | Date
}

/** True when the filters narrow the result beyond the conditions of every search and page. */
export const isFiltered = (filters: Filters): boolean => Object.values(filters).some((value) => value !== undefined)

/** The content of a cursor. It is signed, not secret. */
export interface CursorPayload {
  /** Highest resource id of the snapshot. */
  readonly snapshot: bigint
  /** Start of the next page; the caller defines its meaning. */
  readonly position: string
  /** Hash of the filters and of everything else that must not change between pages. */
  readonly fingerprint: string
}

export class Catalog extends Context.Service<
  Catalog,
  {
    /** Documents by id, in the order of the ids; an unknown id is left out. At most 1 000 at a time. */
    readonly documents: (
      ids: ReadonlyArray<bigint>
    ) => Effect.Effect<ReadonlyArray<ResourceDocument>, SqlError.SqlError>
    /** The next documents after an id, by growing id, in any state: for building an index from nothing. */
    readonly scan: (options: {
      readonly after: bigint
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ResourceDocument>, SqlError.SqlError>
    /**
     * A SQL condition on the resource with the SQL expression `id` as its id (default `r.id`, for `catalog_resources
     * r`): it is visible to discovery by the settings, at most `snapshot`, and passes the filters.
     */
    readonly condition: (
      filters: Filters,
      options?: { readonly id?: string; readonly snapshot?: bigint }
    ) => Statement.Fragment
    /** The public ones of these, in their order, from a cache of one second: for candidates, not for a page. */
    readonly visible: (
      ids: ReadonlyArray<bigint>,
      snapshot: bigint
    ) => Effect.Effect<ReadonlyArray<bigint>, SqlError.SqlError>
    /** Public bodies as JSON text, in the order of the ids; resources that have become invisible are left out. */
    readonly bodies: (
      ids: ReadonlyArray<bigint>
    ) => Effect.Effect<ReadonlyArray<{ readonly id: bigint; readonly json: string }>, SqlError.SqlError>
    /** Changes when the journal has reported a change of any resource; checked once a second. */
    readonly edition: Effect.Effect<string, SqlError.SqlError>
    /** The highest resource id at this moment. */
    readonly snapshot: Effect.Effect<bigint, SqlError.SqlError>
    /** Seals a cursor; it is valid for 15 minutes at most and 10 at least. */
    readonly seal: (payload: CursorPayload) => Effect.Effect<string>
    /** The payload of a cursor that is authentic, not expired and made for this fingerprint; None otherwise. */
    readonly open: (cursor: string, fingerprint: string) => Effect.Effect<Option.Option<CursorPayload>>
  }
>()("tollkeeper/catalog/Catalog") {}

/** A resource in the operators' list; nothing of it is public. */
export interface ResourceSummary {
  readonly id: bigint
  readonly type: ResourceType
  readonly resource: string
  /** Empty for HTTP. */
  readonly toolName: string
  readonly origin: string | null
  readonly state: ResourceState
  readonly stateReason: string | null
  readonly verification: "unverified" | "payment_observed"
  readonly ownership: "provisional" | "proven"
  readonly grade: "claimed" | "declared" | "origin"
  readonly payTos: ReadonlyArray<string>
  readonly version: number
  readonly versionHash: string
  readonly serviceName: string | null
  readonly tags: ReadonlyArray<string>
  readonly firstSeenAt: Date
  readonly updatedAt: Date
  readonly lastSeenAt: Date
  readonly lastPaidAt: Date | null
}

/**
 * A resource with all its records. Histories are newest first and hold at most 200 entries each, as JSON with times in
 * ISO 8601.
 */
export interface ResourceHistory {
  readonly summary: ResourceSummary
  readonly declaration: unknown
  readonly observed: bigint
  readonly settled: bigint
  readonly payers: bigint
  readonly versions: ReadonlyArray<unknown>
  readonly options: ReadonlyArray<unknown>
  readonly decisions: ReadonlyArray<unknown>
  readonly claims: ReadonlyArray<unknown>
  /** With the details that are for operators only (S257). */
  readonly observations: ReadonlyArray<unknown>
}

/** Equal declarations that were rejected on one day; nothing of it is public but the reason. */
export interface RejectedDeclaration {
  /** As declared, cleaned and cut. */
  readonly url: string
  readonly type: string | null
  readonly toolName: string | null
  readonly payTo: string
  readonly stage: "verified" | "settled"
  readonly reason: string | null
  readonly detail: string | null
  /** The listing that it concerned; null if none. */
  readonly resourceId: bigint | null
  readonly times: bigint
  readonly firstAt: Date
  readonly lastAt: Date
}

/** The operators' view of the catalog, whatever discovery shows. */
export class CatalogRecords extends Context.Service<
  CatalogRecords,
  {
    /**
     * The resource that a payment without a declaration was for: by its URL, when the catalog lists that URL once and
     * for this recipient. In the order asked; at most 1 000.
     */
    readonly attribute: (
      asked: ReadonlyArray<{ readonly url: string; readonly payTo: string }>
    ) => Effect.Effect<
      ReadonlyArray<{ readonly id: bigint; readonly origin: string | null } | undefined>,
      SqlError.SqlError
    >
    /** Counts resources by state, and origins that still have a resource. */
    readonly census: Effect.Effect<
      { readonly states: Readonly<Record<ResourceState, bigint>>; readonly origins: bigint },
      SqlError.SqlError
    >
    /** Origins, last seen first. */
    readonly origins: (page: { readonly limit: number; readonly offset: number }) => Effect.Effect<
      {
        readonly total: bigint
        readonly items: ReadonlyArray<{
          readonly origin: string
          readonly resources: bigint
          readonly active: bigint
          readonly lastSeenAt: Date
        }>
      },
      SqlError.SqlError
    >
    /** Resources, last listed first, behind the id of the page before or after `offset` rows. */
    readonly newest: (page: {
      readonly limit: number
      readonly offset: number
      readonly after?: bigint | undefined
      readonly filter?: RecordFilter | undefined
    }) => Effect.Effect<{ readonly total: bigint; readonly items: ReadonlyArray<ResourceSummary> }, SqlError.SqlError>
    /** Rejected declarations, of listed resources and of others, the latest first (S257). */
    readonly rejections: (page: {
      readonly limit: number
      readonly offset: number
    }) => Effect.Effect<
      { readonly total: bigint; readonly items: ReadonlyArray<RejectedDeclaration> },
      SqlError.SqlError
    >
    /** Resources with these words, in this order, in their URL, tool's name or seller's name; the last listed first. */
    readonly find: (asked: {
      readonly words: string
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ResourceSummary>, SqlError.SqlError>
    readonly history: (id: bigint) => Effect.Effect<Option.Option<ResourceHistory>, SqlError.SqlError>
  }
>()("tollkeeper/catalog/CatalogRecords") {}

export type SearchMode = "lexical" | "semantic" | "hybrid"

export interface SearchRequest {
  /** 1 to 512 characters. */
  readonly query: string
  readonly filters: Filters
  readonly snapshot: bigint
  /**
   * All resources that pass the filters, if they are few (`search/rank/RareFilters.ts`); branches rank exactly these.
   * All branches share one read, and a branch that ends does not cancel it. After a failed read, filters are common.
   */
  readonly few: Effect.Effect<ReadonlyArray<bigint> | undefined>
  /** True if no other branch answers this search, so this one may spend more time. */
  readonly isAlone: boolean
  readonly limit: number
}

/** A branch could not answer. The answer is partial then, never an error. */
export interface BranchFailed {
  readonly _tag: "BranchFailed"
  /** For the log. */
  readonly message: string
}

export interface SearchBranch {
  /** `embedded`: by meaning, from the built-in word vectors; `semantic`: by an operator's provider. */
  readonly mode: "lexical" | "embedded" | "semantic"
  /** Weight of this branch when ranks are fused; at least 0. */
  readonly weight: number
  /** Candidates requested of this branch for a fused answer. */
  readonly candidates: number
  /** Timeout, after which the answer is sent without it, marked partial. Milliseconds. */
  readonly timeoutMillis: number
  /** Ranked hits, best first, already filtered by `Catalog.condition`. */
  readonly search: (request: SearchRequest) => Effect.Effect<ReadonlyArray<Hit>, BranchFailed>
  /**
   * Edition of the branch's data: equal requests have equal hits while both this and the catalog stay the same
   * (`search/rank/rankingCache.ts`). Undefined or absent if unknown.
   */
  readonly edition?: Effect.Effect<string | undefined, SqlError.SqlError>
  readonly match?: Matcher
  readonly status: Effect.Effect<BranchStatus, SqlError.SqlError>
}

/** The resources that a search showed to a caller, for attribution. */
export interface Impression {
  readonly query: string
  readonly mode: SearchMode
  /** Ids in the order shown; `offset` is the position of the first, from 0. */
  readonly ids: ReadonlyArray<bigint>
  readonly offset: number
  /** Some hit counts as an answer; otherwise the shown hits are merely the nearest. */
  readonly isAnswered: boolean
  readonly milliseconds: number
  /** Branches that were asked and did not answer. */
  readonly missing: ReadonlyArray<SearchBranch["mode"]>
  readonly reranking: "off" | "used" | "failed"
  /** A pseudonym of the caller. */
  readonly session: string
  /** The caller sent a key; a search without one costs its caller nothing. */
  readonly isKeyed: boolean
}

export class Search extends Context.Service<
  Search,
  {
    /** Adds a branch for as long as the Scope lives; a second one of the same mode is a defect. */
    readonly register: (branch: SearchBranch) => Effect.Effect<void, never, Scope.Scope>
    /** Called after each answered search, outside of the request; it cannot fail or delay the answer. */
    readonly observe: (
      observer: (impression: Impression) => Effect.Effect<void>
    ) => Effect.Effect<void, never, Scope.Scope>
    readonly branches: () => ReadonlyArray<SearchBranch>
    /** Provides a branch's similar terms for as long as the Scope lives. */
    readonly registerSimilarTerms: (words: SimilarTerms) => Effect.Effect<void, never, Scope.Scope>
    /** Terms from the branch that provides them; undefined without such a branch. */
    readonly similarTerms: (...asked: Parameters<SimilarTerms>) => Effect.Effect<ReadonlyArray<SimilarTerm> | undefined>
  }
>()("tollkeeper/catalog/Search") {}

/** The values of the section `search`, which the catalog owns and the branches read. */
export class SearchSettings extends Context.Service<SearchSettings, SearchValues>()(
  "tollkeeper/catalog/SearchSettings"
) {}

/** The catalog's services for plugins that index, rank or report. */
export const catalogContract = contract("catalog", Catalog, CatalogRecords, Search, SearchSettings)
