// The embedded text of a resource: its names, its own description, tags and the names of its parameters, as prose.
// Bounded, and without payment terms: they are filters. All of it is a stranger's text and goes to the embedding model
// as data only.
import type { ResourceDocument } from "../catalog/contract.ts"

const charactersMax = 4_000
const parametersMax = 40

const parametersOf = (value: unknown, depth = 0): ReadonlyArray<string> => {
  if (depth > 5 || typeof value !== "object" || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    (key === "queryParams" || key === "pathParams" || key === "body" || key === "properties") &&
    typeof inner === "object" &&
    inner !== null
      ? [...Object.keys(inner), ...parametersOf(inner, depth + 1)]
      : parametersOf(inner, depth + 1)
  )
}

const grammar = new Set([
  "input",
  "output",
  "type",
  "method",
  "queryParams",
  "pathParams",
  "body",
  "bodyType",
  "headers",
  "properties"
])

const readable = (name: string): string => name.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2").replace(/[_-]+/g, " ")

export const embeddingText = (resource: ResourceDocument): string => {
  const path = resource.resource
    .replace(/^[a-z+]+:\/\/[^/]*/i, "")
    .replace(/[{}]/g, "")
    .replace(/\/v\d+(?=\/|$)/g, "")
  const parameters = [
    ...new Set(resource.operations.flatMap(({ info, schema }) => [...parametersOf(info), ...parametersOf(schema)]))
  ]
    .filter((name) => !grammar.has(name))
    .slice(0, parametersMax)
  const lines = [
    [resource.serviceName, readable(resource.toolName)].filter((name) => name !== "").join(": "),
    resource.description,
    resource.tags.length === 0 ? "" : `Tags: ${resource.tags.map(readable).join(", ")}`,
    parameters.length === 0 ? "" : `Parameters: ${parameters.map(readable).join(", ")}`,
    path.length > 1
      ? readable(
          path
            .split("/")
            .filter((part) => part !== "")
            .join(" ")
        )
      : ""
  ]
  return lines
    .filter((line) => line !== "")
    .join("\n")
    .slice(0, charactersMax)
    .toWellFormed()
}
