// Schemas of the catalog's response bodies; /openapi.json is generated from them (S31–S48, S106–S132, S312, S315).
// Pages of resources are written as text from stored bodies; a test holds them to these shapes.
import { Schema } from "effect"
import { anything, text, time, whole } from "../../kernel/http/wireSchema.ts"
import { PaymentOption } from "../../kernel/payment/Payment.ts"
import { volatileMembers } from "./contract.ts"
import { grades } from "./declaration/Grade.ts"
import { operatorMoves } from "./administration/moveResource.ts"

const version = Schema.Literal(2)
const kind = Schema.Literals(["http", "mcp"])
const nextCursor = Schema.NullOr(Schema.String).annotate({ description: "Cursor of the next page; null on the last." })

export const DiscoveryError = Schema.Struct({
  error: text("Reason code."),
  details: Schema.optionalKey(Schema.Array(text("One sentence for each invalid parameter.")))
}).annotate({ identifier: "DiscoveryError" })

const DiscoveryResource = Schema.Struct({
  resource: text(
    "URL that buyers call, without query; for a dynamic route the origin and its template; the endpoint of an MCP tool."
  ),
  type: kind,
  x402Version: version,
  accepts: Schema.Array(PaymentOption),
  lastUpdated: Schema.optionalKey(time("When its newest version was declared.")),
  description: Schema.optionalKey(text("Untrusted text of the seller, as every text here is.")),
  serviceName: Schema.optionalKey(text("At most 32 characters.")),
  tags: Schema.optionalKey(Schema.Array(Schema.String)),
  mimeType: Schema.optionalKey(text("Media type of its response.")),
  iconUrl: Schema.optionalKey(text("Never fetched by this service.")),
  routeTemplate: Schema.optionalKey(text("Template of a dynamic route.")),
  toolName: Schema.optionalKey(text("Name of an MCP tool.")),
  extensions: Schema.optionalKey(anything("The declaration, under its extension's key.")),
  operations: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ method: Schema.String, accepts: Schema.Array(PaymentOption), info: anything("As declared.") })
    )
  ),
  status: Schema.optionalKey(Schema.Literals(["active", "stale"])),
  verification: Schema.optionalKey(
    Schema.Literals(["unverified", "payment_observed"]).annotate({
      description: "Whether a payment was observed; this does not prove ownership or quality."
    })
  ),
  ownership: Schema.optionalKey(
    Schema.Literals(["provisional", "proven"]).annotate({
      description: "Whether the origin itself has named the recipient."
    })
  ),
  grade: Schema.optionalKey(
    Schema.Literals(grades).annotate({
      description: "Source of the declared text: a payment, the recipient's own key, or the origin itself."
    })
  ),
  settlements: Schema.optionalKey(whole("Settled payments of the last thirty days that count for rank.")),
  payers: Schema.optionalKey(whole("Distinct payers of those payments.")),
  lastSettledAt: Schema.optionalKey(time("When a payment for it was last settled.")),
  priceChangedAt: Schema.optionalKey(time("When its price last changed; absent if it has not changed.")),
  lastLookAt: Schema.optionalKey(time("When its origin was last probed.")),
  uptime: Schema.optionalKey(
    Schema.Finite.annotate({ description: "Share of the probes of thirty days that found it alive, 0 to 1." })
  ),
  evidence: Schema.optionalKey(
    Schema.Struct({
      words: Schema.Literals(["claimed", "paid", "declared", "origin"]).annotate({
        description:
          "Source of the text, price and method: anyone's claim, a claim confirmed by payments, the " +
          "recipient's own, or the origin's."
      }),
      recipient: Schema.Literals(["claimed", "paid", "declared", "origin"]).annotate({
        description: "Source of the recipient. An origin that named it has not confirmed the text."
      }),
      weight: Schema.Literals(["none", "young", "established"]).annotate({
        description: "`young`: paid little and only recently; it ranks behind older and established listings."
      })
    })
  ),
  versionHash: Schema.optionalKey(
    text(`sha256 hex of the canonical JSON (RFC 8785) of this object without ${volatileMembers.join(", ")}.`)
  )
}).annotate({ identifier: "DiscoveryResource" })

export const OneResource = Schema.Struct({ x402Version: version, resource: DiscoveryResource })

export const BrowsePage = Schema.Struct({
  x402Version: version,
  items: Schema.Array(DiscoveryResource),
  pagination: Schema.Struct({
    limit: Schema.Int,
    offset: Schema.Int,
    total: whole("Exact total of the first page's snapshot."),
    cursor: nextCursor
  }),
  partialResults: Schema.Literal(false)
}).annotate({ identifier: "BrowsePage" })

export const ResourceHistory = Schema.Struct({
  x402Version: version,
  resource: text("As it is listed."),
  type: kind,
  toolName: Schema.optionalKey(Schema.String),
  versions: Schema.Array(
    Schema.Struct({
      version: Schema.Int,
      versionHash: Schema.String,
      grade: Schema.Literals(grades),
      at: time("Since when.")
    })
  ),
  prices: Schema.Array(
    Schema.Struct({
      method: Schema.optionalKey(Schema.String),
      scheme: Schema.String,
      network: Schema.String,
      asset: Schema.String,
      amount: text("Atomic units of the asset."),
      payTo: Schema.String,
      from: time("Start of the offer."),
      until: Schema.NullOr(time("End of the offer; null while it is current."))
    })
  )
}).annotate({ identifier: "ListingHistory" })

const facet = Schema.Array(
  Schema.Struct({
    value: text("As the filter of this name takes it; of `evidence`, the weight."),
    asset: Schema.optionalKey(text("For `maxPrice`: the asset of the limit.")),
    count: Schema.Int,
    evidenced: whole("How many of them have evidence; the first values have the most.")
  })
)

export const FacetCounts = Schema.Struct({
  x402Version: version,
  counted: whole("Counted listings: 2,000 at most, those with evidence first."),
  complete: Schema.Boolean.annotate({ description: "Every result was counted." }),
  facets: Schema.Struct({ type: facet, scheme: facet, asset: facet, maxPrice: facet, evidence: facet })
}).annotate({ identifier: "FacetCounts" })

export const JsonFeed = Schema.Struct({
  version: text("Of JSON Feed."),
  title: Schema.String,
  items: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      url: Schema.String,
      title: Schema.String,
      content_text: text("The listing's own description."),
      date_published: time("Since when the listing has evidence."),
      date_modified: Schema.String,
      tags: Schema.Array(Schema.String)
    })
  )
}).annotate({ identifier: "JsonFeed" })

const spans = Schema.Array(Schema.Array(Schema.Int)).annotate({
  description: "Start and end of each word, in UTF-16 units."
})

export const SearchPage = Schema.Struct({
  x402Version: version,
  resources: Schema.Array(DiscoveryResource),
  partialResults: Schema.Boolean.annotate({
    description: "A branch of the requested mode has no provider or did not answer in time."
  }),
  nearestOnly: Schema.optionalKey(
    Schema.Literal(true).annotate({
      description: "No listing is known to answer the query: these are the nearest ones, three at most."
    })
  ),
  pagination: Schema.Struct({ limit: Schema.Int, cursor: nextCursor }),
  matches: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        serviceName: Schema.optionalKey(spans),
        toolName: Schema.optionalKey(spans),
        description: Schema.optionalKey(spans)
      })
    ).annotate({ description: "With `matches=1`, the matched words of each resource's texts; of the first 20." })
  ),
  corrected: Schema.optionalKey(
    Schema.Array(Schema.Struct({ word: text("Of the query."), instead: text("Of a listing, searched for instead.") }))
  ),
  understood: Schema.optionalKey(
    Schema.Struct({
      words: Schema.Array(Schema.String),
      asset: Schema.optionalKey(text("With `maxPrice`, the filter that the words mean.")),
      maxPrice: Schema.optionalKey(text("In atomic units of `asset`.")),
      prefers: Schema.optionalKey(
        Schema.Literals(["cheap", "tool", "dollar"]).annotate({
          description: "What decides between equally relevant hits: the price, tools, or an offer in dollars."
        })
      )
    }).annotate({
      description: "Words of the query that were not searched for: about the price, and about how a call is paid."
    })
  )
}).annotate({ identifier: "SearchPage" })

export const ListingExplanation = Schema.Struct({
  x402Version: version,
  url: text("In the spelling under which it is listed."),
  listings: Schema.Array(anything("The state of each listing of the URL, with its history.")),
  items: Schema.Array(anything("Observations, newest first: stage, decision, public reason, times, lag.")),
  pagination: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "ListingExplanation" })

export const AccountExplanation = Schema.Struct({
  x402Version: version,
  account: text("The session's."),
  listings: Schema.Array(anything("The state of each listing that pays the account, with its history.")),
  items: Schema.Array(anything("Observations of payments to it, newest first.")),
  pagination: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
}).annotate({ identifier: "AccountExplanation" })

export const ActionRequest = Schema.Struct({
  type: Schema.optionalKey(kind.annotate({ default: "http" })),
  url: text("URL of the resource."),
  toolName: Schema.optionalKey(text("Required with type mcp.")),
  move: Schema.Literals(operatorMoves),
  note: Schema.optionalKey(text("For other operators; not shown publicly."))
})

export const ActionResult = Schema.Struct({ resource: Schema.String, from: Schema.String, to: Schema.String })

export const ChallengeRequest = Schema.Struct({
  payTo: text("Account (G… or C…) of the recipient."),
  challenge: Schema.optionalKey(text("The challenge to answer; absent to request one.")),
  signature: Schema.optionalKey(
    text("Base64: the account's signature of the challenge (SEP-53), or the signed authorization; only with it.")
  )
})

export const ChallengeAnswer = Schema.Struct({
  payTo: Schema.String,
  challenge: Schema.optionalKey(text("To be signed by the account.")),
  authorization: Schema.optionalKey(
    text("For a contract account, sign this instead: base64 of a SorobanAuthorizationEntry that moves nothing.")
  ),
  expiresAt: Schema.optionalKey(time("Until when.")),
  grade: Schema.optionalKey(text("`declared`: the key may describe this recipient from now on."))
})

export const ProbeRequested = Schema.Struct({
  origin: Schema.String,
  named: whole("Resources of the origin that its documents name."),
  listed: whole("Resources that were not known before; unverified until a payment is observed."),
  moved: whole("Listings that moved here from other origins, by signed moves."),
  probedAgain: whole("Known listings of the origin that are probed again: 100, hidden ones first."),
  unlisted: Schema.Array(
    Schema.Struct({
      resource: text("A resource of the origin; for another origin or without a URL, the document's entry unchanged."),
      toolName: Schema.optionalKey(Schema.String),
      reason: text(
        "`delisted`, `no_terms`, `not_asked`, `listed_before`, `beyond_limit`, `other_origin` or `unreadable_url`."
      )
    })
  ),
  asked: text("The requests made, and their results.")
})
