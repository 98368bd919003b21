// The history of a resource on the wire, and the query that asks for it: by its URL, and for a tool by its name too.
import type { ResourceHistory } from "./History.ts"
import type { ResolveRequest } from "./Resolve.ts"

/** The request, or its issues. */
export const readHistoryQuery = (
  query: URLSearchParams
): ResolveRequest | { readonly wrong: ReadonlyArray<string> } => {
  const url = query.get("resource") ?? query.get("url") ?? ""
  const toolName = query.get("toolName") ?? ""
  const type = query.get("type") ?? (toolName === "" ? "http" : "mcp")
  const wrong = [
    ...(url === "" ? ["resource: the URL of the resource"] : []),
    ...(type === "http" || type === "mcp" ? [] : ["type: http or mcp"]),
    ...(type === "mcp" && toolName === "" ? ["toolName: required with type=mcp"] : [])
  ]
  return wrong.length > 0 ? { wrong } : { type: type as "http" | "mcp", url, toolName: type === "mcp" ? toolName : "" }
}

export const encodeHistory = ({ prices, resource, toolName, type, versions }: ResourceHistory): string =>
  JSON.stringify({
    x402Version: 2,
    resource,
    type,
    ...(toolName === "" ? {} : { toolName }),
    versions: versions.map(({ at, grade, hash, version }) => ({
      version,
      versionHash: hash,
      grade,
      at: at.toISOString()
    })),
    prices: prices.map(({ from, operation, option, until }) => ({
      ...(operation === "" ? {} : { method: operation }),
      scheme: option["scheme"],
      network: option["network"],
      asset: option["asset"],
      amount: option["amount"],
      payTo: option["payTo"],
      from: from.toISOString(),
      until: until?.toISOString() ?? null
    }))
  })
