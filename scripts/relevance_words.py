"""Word lists of relevance.py."""

STOP = set(
    """a about above after again against all also am an and any are as at be because been before being below between both but by can cannot
    could did do does doing down during each either else etc few for from further had has have having he her here him his how however i if
    in into is it its itself just let like may me might more most must my no nor not now of off on once one only or other otherwise our out
    over own per same shall she should since so some such than that the their them then there therefore these they this those through thus
    to too under until up upon us very was we were what when where whether which while who whom whose why will with within without would
    yet you your""".split()
)

# Words of headings that say nothing about their subject.
GENERIC = set(
    """about abstract acknowledgements additional algorithm allowed api appendix application arguments attributes authors available background
    basic basics behavior behaviour bugs building caveats change changes class classes code command commands common compatibility concepts
    conclusion configuration constants content contents copyright data default definition definitions dependencies deprecated description
    design details diagnostics directive directives documentation elements enumerations environment error errors event events example examples
    exceptions exit explanation faq features field fields file files flags format formats frequently asked questions function functions further
    general getting started global glossary goals guide hierarchy history how implementation important index information inheritance input install
    installation interface interfaces internal internals introduction issues items keyword keywords known language license licensing limitations
    list lists macros main member members messages method methods miscellaneous misc model module modules more motivation name names new note
    notes object objects operation operations operators option optional options other output overview parameter parameters part parts
    prerequisites problems procedure procedures program properties property public purpose quick rationale reading reference references
    related release requirements resources restrictions result results return returns rules sample scope section see setting settings setup
    signals simple source special specific specification standard start started status structure structures style subject summary support
    supported synopsis syntax system table tables terminology test testing tests text theory thread tips todo topics troubleshooting tutorial
    type types usage use user using value values variable variables various version versions warning warnings work""".split()
)

# Words that a person who looks for something would leave out.
WEAK = set(
    """able above actually added additionally allow allowed allows along already although always another appear appears available based become
    becomes best better called calling calls cannot case cases cause causes certain change changed changes come comes consider contain
    containing contains correct corresponding currently default defined depending described different done enough ensure equal equivalent even
    every exactly example except exist existing exists expected false find first following follows found four full general generally get gets
    give given gives good hence however include included includes including indicate indicates instead intended keep kind know known large last
    later least less likely long look looks made main make makes making many mean means much need needed needs never next note noted often only
    order part particular passed passing perform performed place possible present previous probably provide provided provides rather really refer
    refers related require required requires result results return returned returns right said same second see seem self sense several show shown
    shows similar simple simply single small sometimes soon specific specified specify still such supported sure take taken takes than thing
    things third three together true trying turn turned type types unless used useful user uses using usual usually valid value values various
    very want wants ways well whole works write written wrong""".split()
)

# Questions of people at home and at work that no software manual answers: a template, and the words for each of its blanks.
PEOPLE = ["Marta Oyelaran", "Jonas Feldkamp", "Priya Raghunathan", "Ewan McAllister", "Lucía Barrenechea", "Tomasz Wilk", "Hanneke de Boer"]
FIRMS = ["Brightwater Bakery", "Halloran & Pike", "Nordlicht Fahrräder", "Sunnyside Dental", "Kestrel Roofing", "Maple Lane Florists", "Orchard Vets"]
PLACES = ["Lisbon", "Kyoto", "Tromsø", "Marrakesh", "Edinburgh", "Valparaíso", "Ljubljana"]
PLANTS = ["tomatoes", "hydrangeas", "rhubarb", "a lemon tree", "lavender", "climbing roses", "courgettes"]
DISHES = ["lentil soup", "sourdough bread", "beef stew", "an apple crumble", "risotto", "pancakes", "roast chicken"]
MONTHS = ["January", "March", "May", "June", "September", "October", "November"]
AMOUNTS = ["€412.50", "1,280 dollars", "£96.40", "3,750 euros", "$58.99", "£2,140"]
TEAMS = ["the Harriers", "our under-12 team", "the Redwood Ramblers", "the Lakeside rowing club", "the women's relay team"]
PETS = ["a rescue greyhound", "two kittens", "my rabbit", "an old labrador", "the budgie"]
ROOMS = ["bathroom", "hallway", "attic bedroom", "kitchen", "garage"]

NOTHING = [
    # garden
    ("when should I prune {} in a cold spring", PLANTS),
    ("why are the leaves of {} turning yellow", PLANTS),
    ("best compost for {} on a balcony", PLANTS),
    ("how to get rid of {} without poison", ["slugs in the lettuce bed", "aphids on the beans", "moles in the lawn", "ants on the patio"]),
    ("how often to water {} in {}", PLANTS, ["a heatwave", "a clay pot", "sandy soil", "winter"]),
    # kitchen
    ("grandmother's recipe for {} with {}", DISHES, ["thyme", "smoked paprika", "buttermilk", "rosemary and garlic", "cinnamon"]),
    ("how long does {} keep in the fridge", DISHES),
    ("what wine goes well with {}", DISHES),
    ("substitute for {} when baking a birthday cake", ["eggs", "butter", "sour cream", "vanilla sugar", "almond flour"]),
    ("oven temperature for {} for twelve guests", DISHES),
    # invoices and orders
    ("unpaid invoice from {} for {}", FIRMS, AMOUNTS),
    ("did {} already transfer the deposit", FIRMS),
    ("{} asked for a refund of {}", PEOPLE, AMOUNTS),
    ("where is order {} for {}", ["KD-20418", "77-3096", "B4471", "2231-X", "LM/8802"], FIRMS),
    ("what did we agree with {} about the delivery date", FIRMS),
    ("phone number of {}'s bookkeeper", PEOPLE),
    ("{} rent increase letter for the shop on {}", MONTHS, ["Quay Street", "Mill Lane", "Bahnhofstrasse", "Harbour Road", "Elm Square"]),
    ("how many crates of {} were delivered on Tuesday", ["oranges", "sparkling water", "tulip bulbs", "olive oil", "smoked salmon"]),
    # people at work
    ("when does {} come back from parental leave", PEOPLE),
    ("why did {} resign in {}", PEOPLE, MONTHS),
    ("notes from the salary talk with {}", PEOPLE),
    ("who brings the cake for {}'s farewell", PEOPLE),
    ("{} complained about the cleaning company again", PEOPLE),
    ("lunch with {} moved to {}", PEOPLE, ["Thursday noon", "next Friday", "the Italian place", "half past one", "the canteen"]),
    # travel
    ("cheap hotel near the harbour in {}", PLACES),
    ("do I need a visa for {} with a Swiss passport", PLACES),
    ("night train from {} to Vienna with a bicycle", PLACES),
    ("what is the weather like in {} in {}", PLACES, MONTHS),
    ("lost luggage on the flight to {}", PLACES),
    ("best beaches within an hour of {}", ["Lisbon", "Valparaíso", "Palermo", "Split", "Cádiz"]),
    # health
    ("can I take {} while breastfeeding", ["ibuprofen", "antihistamines", "cough syrup", "magnesium tablets", "iron supplements"]),
    ("my {} hurts after running downhill", ["left knee", "hip", "Achilles tendon", "lower back", "shin"]),
    ("is a fever of {} dangerous for a toddler", ["39.4", "38.5 degrees", "40 after vaccination", "39 at night"]),
    ("exercises for {} after surgery", ["a stiff shoulder", "a torn meniscus", "carpal tunnel", "a slipped disc"]),
    ("appointment with Dr {} for {}", ["Okafor", "Lindqvist", "Haddad", "Petrova"], ["the allergy results", "a flu jab", "new glasses", "a skin check"]),
    # sports and leisure
    ("who scored for {} on Saturday", TEAMS),
    ("training times of {} during the holidays", TEAMS),
    ("how to serve better in {}", ["tennis", "beach volleyball", "badminton", "table tennis"]),
    ("chords of the song {} played at the wedding", [name.split()[0] for name in PEOPLE]),
    ("film from the nineties about {}", ["a lighthouse keeper", "two sisters and a horse", "a chess prodigy", "an Antarctic expedition"]),
    ("knitting pattern for {}", ["baby socks", "a cable jumper", "fingerless mittens", "a striped scarf"]),
    # home, car and animals
    ("what does it cost to tile a {}", ROOMS),
    ("mould behind the wardrobe in the {}", ROOMS),
    ("neighbour's {} keeps us awake at night", ["dog", "heat pump", "trumpet practice", "rooster", "washing machine"]),
    ("winter tyres for {} second hand", ["a Fiat Panda", "an old Volvo estate", "a camper van", "a Skoda Octavia"]),
    ("vet said {} must lose weight", PETS),
    ("what vaccinations does {} need before boarding", ["a rescue greyhound", "a kitten", "my rabbit", "an old labrador"]),
    # school, family and authorities
    ("when is {} at the primary school", ["the summer fair", "parents' evening", "the nativity play", "sports day", "the book swap"]),
    ("birthday present for {} who loves {}", ["a niece of nine", "my father-in-law", "a retired teacher", "our godson"], ["birds", "castles", "baking", "sailing"]),
    ("does the household insurance pay for {}", ["a stolen bicycle", "a burst pipe", "hail damage to blinds", "a broken window"]),
]
