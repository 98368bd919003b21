// The platform services of a ledger that listens.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { Layer } from "effect"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { layer as nodeCrypto } from "../../../runtime/platform/nodeCrypto.ts"
import { layer as nodeHttpCalls } from "../../../runtime/platform/nodeHttpCalls.ts"
import { layer as nodeListeners } from "../../../runtime/platform/nodeListeners.ts"

export const platform = Layer.mergeAll(
  nodeCrypto,
  nodeHttpCalls,
  nodeListeners,
  NodeFileSystem.layer,
  NodePath.layer,
  Supervisor.layer
)
