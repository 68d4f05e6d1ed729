"""Candidate words for text of known length: common, short, lower-case English words.

Most tokenisers hold most of these, with their leading space, as a single token. Which of them a target really
holds so is found out by `harness.workload.lexicon`; the order, most common first, only makes that search short.
"""

from __future__ import annotations

_WORDS = """
the of and to in is that for it as with on be was by this are from at or an have not you which but we they has he
all one can will there more if out so what up said about other into than its time only could new them may then do
first any my now like our over me even most made after also did many off before must well back through years where
much your way down should because long each just state people too those mr little good very make world still own see
men work get here between life being under three never day same another know while last might us great old year come
since against go came right used take states himself few house use during without again place around however home
small found thought went say part once general high upon school every does got united left number course until
always away something fact water though less public put think almost hand enough far took head yet system better set
told nothing night end why called eyes find going look asked later point knew next program city business give group
toward young days let room side social given present several order second possible rather per face among form
important often things looked early white case become large big need four within felt along children saw best ever
least power light thing seemed family interest want members mind country area others done turned although open
service certain kind problem began different door thus help sense means whole matter times itself together line name
human action example company local show five history whether gave either today act feet across taken past quite
anything seen having body half really week car words word field already tell college shall money period held keep
sure free real feel seems behind cannot miss air question making office brought whose special problems major heard
became moment study available known result street economic position reason change south board job society areas west
close turn love community true court full cost seem age future center control art policy voice wanted woman common
necessary front following sometimes six clear further land able feeling party mother music provide education child
effect level students run short stood town morning outside total figure rate north century leaders class plan hours
usually minutes evidence theory million note sound cut read black strong table answer hope range value ready call
return rest main game type leave bring cold stage final color book list test nature simple story ground hold growth
play hear summer private basis view tax living move red month hot paper single wall lost late dark hard east
building wide deep lower upper step green window hair cause care meet bad talk picture blue road data son subject
size equal team piece heart central press floor square food spring cover ten price soon effort nearly record amount
eye horse drive modern heavy stand sort walk film market store hour wait wish race lay fine bit earth rule radio
base nice round trade bill doubt watch glass parts begin write fall post club foot seven eight share corner chance
date thin stop doctor trees stay quality remain sent break allow speak simply spent add fear visit cell ways plane
ones pass wrong goes quickly cool goal ball rise dry warm fast winter sea moving eat bed unit stock sun knows entire
drop length trial oil direct fair page source ability cent built region shot model carry term forms farm lead letter
box skin sleep sky lot movement sign meeting mass key beauty lake shape edge weeks bank master bright fresh truth
station plant reach capital peace middle style thick broke serve forward design poem truck wind hall raised ride
born speed nine rose lines rock issue image bridge scene laid claim mile plans yard laws sat beach spoke stone staff
levels tree touch train active marked sides garden win mark rich coming gas index score smile offer king soft grass
actor fourth camp notice hill gone cars block gain angry leg agree catch learn ice rain snow ship wild safe flat
throw grow proper task tone topic tool track raise pick pull push join jump kick lack lady laugh lift link lock log
loud low luck map mail meal meat mild milk mix mouth nail neck nerve nose novel nurse ocean odd pack pain pair park
path pen phone pilot pipe pitch plain plate pool pot pound pride prime print prize proof proud pure quick quiet
radar rail rank rapid rare ratio raw relief rent reply ring risk river roll roof root rope rough route row royal
rush sail salt sand save scale seat seed sell send shade sharp shell shift shine shirt shock shoe shop shore shut
silk silver sing sister site skill slide slip slow smart smoke smooth soap soil solid solve song soul soup space
spare spark spell spend spin spirit split spot spread stair stamp star start steal steam steel stem stick stir storm
strange stream stress string strip suit sugar sum super surface sweet swim swing switch tail tale tall tank tape
taste taxi tea teach tear tend tent text thank theme tiny tip tired title tooth top tour tower toy trace trail trap
treat trend trick trip troop trust tube tune twin twice uncle union urban usual valley van vary vast verb video vote
wage wake wash waste wave weak wealth wear weather weight wet wheel wing wire wise wood wool worry worth wrap yellow
zero zone accept access acid actual adapt admit adopt adult advice affair afford afraid agent aid aim alarm alert
alive alone angle animal annual apart appeal appear apple apply arm array arrive arrow aside asset assume attach
attempt author autumn avoid award aware baby bag balance band bar bare bat bath bear belief bell belong belt bench
bend benefit beside beyond bike bind bird birth bite blame blank blind bond bone boot border boss bottle bottom bowl
brain branch brand brave bread brief broad brother brown brush budget bug build bunch burn bus busy button buy cable
"""

CANDIDATES: tuple[str, ...] = tuple(_WORDS.split())
"""1,024 different words of lower-case ASCII letters, most common first."""
