// A resource as the catalog passes it to an index, with the fields that a test overrides.
import { Option } from "effect"
import type { ResourceDocument } from "../../../plugins/catalog/contract.ts"

export const resourceDocument = (parts: Partial<ResourceDocument> = {}): ResourceDocument => ({
  id: 1n,
  type: "http",
  resource: "https://seller.example/api",
  toolName: "",
  origin: Option.some("https://seller.example"),
  description: "",
  serviceName: "",
  tags: [],
  operations: [],
  options: [],
  state: "active",
  version: 1,
  versionHash: "00",
  firstSeenAt: new Date(0),
  updatedAt: new Date(0),
  lastSeenAt: new Date(0),
  settled: 0n,
  payers: 0n,
  ...parts
})
