// A relevance set: resources, queries with filters, graded judgments and a recorded dense ranking, one JSON object per
// line. The default set is outside the project, in `../shared/data/search-relevance`; other files of the same format
// may be given.
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Option } from "effect"
import { readNetwork } from "../../kernel/Dialect.ts"
import type { PaymentOption, ResourceDocument } from "../../plugins/catalog/contract.ts"

export interface RelevanceQuery {
  readonly id: string
  readonly class: string
  readonly query: string
  readonly filters: Readonly<Record<string, string>>
  readonly expects_no_result: boolean
}

export interface Dataset {
  readonly resources: ReadonlyArray<{
    readonly name: string
    readonly document: ResourceDocument
    readonly raw: RawResource
  }>
  readonly queries: ReadonlyArray<RelevanceQuery>
  /** Grades 0 to 3 by query and resource; relevant from 2. */
  readonly grades: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Resource and score by query, best first. */
  readonly dense: ReadonlyMap<string, ReadonlyArray<readonly [resource: string, score: number]>>
}

export interface RawResource {
  readonly id: string
  readonly type: "http" | "mcp"
  readonly resource: {
    readonly url: string
    readonly description?: string
    readonly serviceName?: string
    readonly tags?: ReadonlyArray<string>
  }
  readonly accepts: ReadonlyArray<{
    readonly scheme: string
    readonly network: string
    readonly asset: string
    readonly amount: string
    readonly payTo: string
  }>
  readonly mcp?: { readonly server_name: string; readonly tool_name: string }
}

export const defaultFolder = fileURLToPath(new URL("../../../shared/data/search-relevance/", import.meta.url))

export const isPresent = existsSync(`${defaultFolder}catalog.jsonl`)

const lines = <A>(path: string): ReadonlyArray<A> =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as A)

const documentOf = (raw: RawResource, id: bigint): ResourceDocument => ({
  id,
  type: raw.type,
  resource: raw.resource.url,
  toolName: raw.mcp?.tool_name ?? "",
  origin: Option.some(new URL(raw.resource.url).origin),
  description: raw.resource.description ?? "",
  serviceName: raw.resource.serviceName ?? "",
  tags: raw.resource.tags ?? [],
  operations:
    raw.mcp === undefined ? [] : [{ method: "", info: { serverName: raw.mcp.server_name }, schema: undefined }],
  options: raw.accepts.map((option): PaymentOption => ({
    scheme: option.scheme,
    network: Option.getOrThrow(readNetwork(option.network)).network,
    asset: option.asset,
    amount: BigInt(option.amount),
    payTo: option.payTo
  })),
  state: "active",
  version: 1,
  versionHash: raw.id,
  firstSeenAt: new Date(0),
  updatedAt: new Date(0),
  lastSeenAt: new Date(0),
  settled: 0n,
  payers: 0n
})

export const loadDataset = (
  files: {
    readonly queries?: string | undefined
    readonly judgments?: string | undefined
    readonly dense?: string | undefined
  } = {}
): Dataset => {
  const judgments = lines<{ query: string; resource: string; grade: number }>(
    files.judgments ?? `${defaultFolder}judgments.jsonl`
  )
  const grades = new Map<string, Map<string, number>>()
  for (const { grade, query, resource } of judgments)
    grades.set(query, (grades.get(query) ?? new Map()).set(resource, grade))
  return {
    resources: lines<RawResource>(`${defaultFolder}catalog.jsonl`).map((raw, at) => ({
      name: raw.id,
      raw,
      document: documentOf(raw, BigInt(at + 1))
    })),
    queries: lines<RelevanceQuery>(files.queries ?? `${defaultFolder}queries.jsonl`),
    grades,
    dense: new Map(
      lines<{ query: string; ranking: ReadonlyArray<readonly [string, number]> }>(
        files.dense ?? `${defaultFolder}dense-run.jsonl`
      ).map(({ query, ranking }) => [query, ranking])
    )
  }
}
