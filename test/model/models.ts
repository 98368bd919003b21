// The models of promises that span several parties, besides the settlement and its delivery.
import { channel } from "./channel.ts"
import { listing } from "./listing.ts"
import { log } from "./log.ts"
import { toolContent } from "./toolContent.ts"
import type { Model } from "./visit.ts"

export const models: ReadonlyArray<Model> = [toolContent, channel, listing, log]
