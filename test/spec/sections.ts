// The sections of the specification's requirements, only by their numbers; `requirements.md` has the text.

export interface Section {
  readonly title: string
  /** First and last requirement, inclusive. */
  readonly from: number
  readonly to: number
}

export const sections: ReadonlyArray<Section> = [
  { title: "Processes, roles and naming", from: 1, to: 13 },
  { title: "Request flow", from: 14, to: 16 },
  { title: "Cataloging rules and profiles", from: 17, to: 30 },
  { title: "Discovery resource", from: 31, to: 42 },
  { title: "Payment option", from: 43, to: 48 },
  { title: "Verify and settle bodies", from: 49, to: 58 },
  { title: "Supported kinds", from: 59, to: 63 },
  { title: "Health", from: 64, to: 73 },
  { title: "Verify rules", from: 74, to: 79 },
  { title: "Settle rules", from: 80, to: 88 },
  { title: "Settlement states", from: 89, to: 97 },
  { title: "Catalog, budget and generation states", from: 98, to: 105 },
  { title: "Browse and resolve", from: 106, to: 114 },
  { title: "Search", from: 115, to: 132 },
  { title: "Analytics: common rules", from: 133, to: 143 },
  { title: "Analytics: routes", from: 144, to: 177 },
  { title: "Settlement record", from: 178, to: 180 },
  { title: "Tool server: transports", from: 181, to: 187 },
  { title: "Tool server: search and get", from: 188, to: 200 },
  { title: "Tool server: paid call", from: 201, to: 222 },
  { title: "Tool server: error contract", from: 223, to: 234 },
  { title: "Tool server: network safety", from: 235, to: 238 },
  { title: "Authentication and secrets", from: 239, to: 253 },
  { title: "Events and logs", from: 254, to: 260 },
  { title: "Protocol reasons", from: 261, to: 273 },
  { title: "Pubnet startup refusal", from: 274, to: 284 },
  { title: "Configuration keys (names are part of the contract)", from: 285, to: 305 },
  { title: "Versioning", from: 306, to: 311 },
  { title: "Points that the specification leaves open: each is decided, documented and tested", from: 312, to: 335 },
  { title: "Form of the project", from: 336, to: 345 }
]

/** Number of requirements. */
export const requirements = 345
